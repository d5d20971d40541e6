// SPDX-License-Identifier: Apache-2.0
//
// Runs scripts on a connection, a batch in one write. A script is sent by its hash, and by its text
// if the server does not know the hash. Each answer is checked to belong to its own request.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/scripts/scripts.hpp"
#include "backends/redis/wire/connection.hpp"

namespace dlock::redis {

/// The texts of its arguments must live until the call is complete.
struct ScriptCall {
  boost::container::small_vector<Word, 6> keys;
  boost::container::small_vector<Word, 9> arguments;  ///< without the tag
};

struct ScriptAnswer {
  enum class Kind {
    reply,
    refused,   ///< not executed; `verdict` says what to do
    not_sent,  ///< not executed
    unknown,   ///< maybe executed
  };
  Kind kind = Kind::not_sent;
  Replies items;  ///< items of the reply, without the tag
  Verdict verdict;
  Failure failure;

  /// The leading number of a reply; -1 if there is none.
  std::int64_t code() const noexcept;
};

/// One answer per call, in order, by the deadline. Ends a connection whose server is silent, is a
/// replica, or answers out of order.
asio::awaitable<std::vector<ScriptAnswer>> run_scripts(Env& env,
                                                       std::shared_ptr<Connection> connection,
                                                       const Script& script,
                                                       std::vector<ScriptCall> calls,
                                                       TimePoint deadline);

/// One call under way, for a caller that waits for it without another coroutine:
///
///   const auto asked = ask(*connection, script, call);
///   co_await asked.pending.settled(deadline);
///   auto answer = asked.answer(env, *connection, [&] { return call; });
///   if (is_unknown_hash(answer)) answer = co_await run_text(...);
struct Asked {
  const Script* script;
  std::string tag;
  TimePoint since;
  Pending pending;

  /// Returns the result so far. May be called once. `call` returns the call for the text about a
  /// refusal, so the caller does not have to store it.
  template <class Call>
  ScriptAnswer answer(Env& env, Connection& connection, Call call) const {
    auto answer = take(env, connection);
    if (answer.kind == ScriptAnswer::Kind::refused) explain(*script, call(), answer);
    return answer;
  }

 private:
  ScriptAnswer take(Env& env, Connection& connection) const;
  static void explain(const Script& script, const ScriptCall& call, ScriptAnswer& answer);
};
/// The first receiver of the output of a script that also publishes messages: this client, or the
/// subscribers. A server writes to its clients at the end of an event-loop turn. It starts with the
/// client that it last produced output for. That is this client unless it had output before. So
/// `others` sends a PING first. Only an order in time depends on it.
enum class FirstToHear : std::uint8_t { we, others };
/// Sends the script by its hash. `script` must outlive the call.
Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          FirstToHear first = FirstToHear::we);
enum class ScriptBy : std::uint8_t { hash, text };
Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          ScriptBy by);
/// The server does not know the hash (any more): run_text() sends the text.
bool is_unknown_hash(const ScriptAnswer& answer);
asio::awaitable<ScriptAnswer> run_text(Env& env, std::shared_ptr<Connection> connection,
                                       const Script& script, const ScriptCall& call,
                                       TimePoint deadline);

/// Sends the script by its hash, and by its text if the server does not know the hash.
asio::awaitable<ScriptAnswer> run_script(Env& env, std::shared_ptr<Connection> connection,
                                         const Script& script, const ScriptCall& call,
                                         TimePoint deadline);

}  // namespace dlock::redis

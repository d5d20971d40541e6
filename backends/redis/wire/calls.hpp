// SPDX-License-Identifier: Apache-2.0
//
// Scripts run on a connection, a batch in one write: by their hash, by their text where the server
// does not know the hash (any more), and each answer checked to belong to its own request.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/scripts/scripts.hpp"
#include "backends/redis/wire/connection.hpp"

namespace dlock::redis {

/// Its words' texts live as long as the call is under way.
struct ScriptCall {
  boost::container::small_vector<Word, 6> keys;
  boost::container::small_vector<Word, 9> arguments;  ///< without the tag
};

struct ScriptAnswer {
  enum class Kind {
    reply,
    refused,   ///< surely not done; `verdict` says what to do
    not_sent,  ///< surely not done
    unknown,   ///< maybe done
  };
  Kind kind = Kind::not_sent;
  Replies items;  ///< of a reply, without the tag
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

/// One call under way, for who waits for it without a coroutine in between:
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

  /// What has come of it by now. Once. `call` gives what was called, for the words about a refusal:
  /// nobody has to keep it meanwhile.
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
/// Who hears first of a script that also tells others. A server writes to its clients at the end of
/// a turn, and begins with the one that it had the latest news for, which is ours, unless there was
/// some for us before: so `others` costs a PING. No more than an order in time hangs on it.
enum class FirstToHear : std::uint8_t { we, others };
/// By its hash; `script` lives longer.
Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          FirstToHear first = FirstToHear::we);
enum class ScriptBy : std::uint8_t { hash, text };
Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          ScriptBy by);
/// The server does not know it (any more): run_text() tells it.
bool is_unknown_hash(const ScriptAnswer& answer);
asio::awaitable<ScriptAnswer> run_text(Env& env, std::shared_ptr<Connection> connection,
                                       const Script& script, const ScriptCall& call,
                                       TimePoint deadline);

/// All of that. `call` is the caller's.
asio::awaitable<ScriptAnswer> run_script(Env& env, std::shared_ptr<Connection> connection,
                                         const Script& script, const ScriptCall& call,
                                         TimePoint deadline);

}  // namespace dlock::redis

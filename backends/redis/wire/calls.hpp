// SPDX-License-Identifier: Apache-2.0
//
// Scripts run on a connection, a batch in one write: by their hash, by their text where the server
// does not know the hash (any more), and each answer checked to belong to its own request.
#pragma once

#include <boost/container/small_vector.hpp>
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
  std::vector<Reply> items;  ///< of a reply, without the tag
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

/// The same for one. `call` is the caller's.
asio::awaitable<ScriptAnswer> run_script(Env& env, std::shared_ptr<Connection> connection,
                                         const Script& script, const ScriptCall& call,
                                         TimePoint deadline);

}  // namespace dlock::redis

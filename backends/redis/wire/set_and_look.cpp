// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/set_and_look.hpp"

#include <array>

#include "backends/redis/error.hpp"

namespace dlock::redis {

SetAndLook set_and_look(Env& env, Connection& connection, std::span<const Word> keys, Word value,
                        std::chrono::milliseconds time) {
  const auto since = env.now();
  const std::array<Word, 6> set{
      "SET", keys.front(), value, "NX", "PX", Word(static_cast<std::uint64_t>(time.count()))};
  const std::array<Word, 1> look{"MGET"};
  return {since, connection.send_both({set}, {look, keys})};
}

SetAndLook::Answer SetAndLook::answer(Env& env, Connection& connection) const {
  Answer answer;
  auto outcome = look.take();
  if (!outcome) {
    answer.failure = {Error::no_answer, ""};
    if (connection.is_silent(since, env.now())) connection.close(answer.failure);
    return answer;
  }
  if (outcome->kind != Outcome::Kind::reply) {
    const bool sent = outcome->kind != Outcome::Kind::not_sent;
    answer.kind = sent ? Kind::unknown : Kind::not_sent;
    answer.failure = connection.failure();
  } else {
    answer.kind = Kind::found;
    answer.values = std::move(outcome->reply.items);
  }
  return answer;
}

}  // namespace dlock::redis

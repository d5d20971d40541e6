// SPDX-License-Identifier: Apache-2.0
//
// The target's part of a migration: a cache cannot keep a record.
#include "backends/memcached/backend.hpp"
#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/migration.hpp"

namespace dlock::memcached {

asio::awaitable<RecordAnswer> MemcachedBackend::run_record(
    std::shared_ptr<Server> server, std::function<asio::awaitable<RecordAnswer>(Commands&)> step,
    TimePoint deadline) {
  auto work = [step = std::move(step)](Call& call) { return step(call); };
  auto ran = co_await server->line().run<RecordAnswer>(std::move(work), deadline);
  if (ran.result) co_return std::move(*ran.result);
  RecordAnswer answer;
  answer.status = RecordStatus::unavailable;
  answer.failure = about(*server, std::move(ran.why));
  co_return answer;
}

asio::awaitable<RecordAnswer> MemcachedBackend::raise(ClaimPtr held, std::uint64_t min_token,
                                                      TimePoint deadline) {
  const auto claim = std::static_pointer_cast<KeyClaim>(held);
  const ReleaseOrder holder{claim->key, claim->request().owner.id, {}};
  std::function<asio::awaitable<RecordAnswer>(Commands&)> step =
      [holder, token_key = claim->token_key, min_token](Commands& server) {
        return memcached::raise(server, holder, token_key, min_token);
      };
  co_return co_await run_record(claim->server, std::move(step), deadline);
}

asio::awaitable<RecordAnswer> MemcachedBackend::note(std::string key, TimePoint deadline) {
  std::function<asio::awaitable<RecordAnswer>(Commands&)> step =
      [note_key = names_.note_key(key)](Commands& server) { return read_note(server, note_key); };
  const auto server = server_of_name(key);
  auto read = co_await run_record(server, std::move(step), deadline);
  if (read.status == RecordStatus::unknown) read.status = RecordStatus::unavailable;
  co_return read;
}

asio::awaitable<RecordAnswer> MemcachedBackend::set_note(std::string key,
                                                         std::optional<std::string> from,
                                                         std::optional<std::string> to,
                                                         TimePoint deadline) {
  std::function<asio::awaitable<RecordAnswer>(Commands&)> step =
      [note_key = names_.note_key(key), before = from.value_or(""), after = to.value_or("")](
          Commands& server) { return write_note(server, note_key, before, after); };
  const auto server = server_of_name(key);
  co_return co_await run_record(server, std::move(step), deadline);
}

}  // namespace dlock::memcached

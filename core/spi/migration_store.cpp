// SPDX-License-Identifier: Apache-2.0
//
// The optional calls of a store: each answers that this store does not support it.
#include "dlock/spi/migration_store.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <new>

#include "dlock/spi/backend.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {

asio::awaitable<std::vector<SelfTestReport>> Backend::self_test(TimePoint) {
  co_return std::vector<SelfTestReport>{};
}

asio::awaitable<AskAnswer> Backend::ask(std::string, std::uint64_t, Revocation, TimePoint) {
  AskAnswer answer;
  answer.failure = make_failure(errc::not_supported, "its store cannot notify a holder");
  co_return answer;
}

asio::awaitable<DowngradeAnswer> Backend::downgrade(ClaimPtr, TimePoint) {
  DowngradeAnswer answer;
  answer.failure.error = make_error_code(errc::not_supported);
  co_return answer;
}

asio::awaitable<Failure> Backend::offer(ClaimPtr, std::string, std::chrono::milliseconds,
                                        TimePoint) {
  co_return Failure{make_error_code(errc::not_supported), "its store cannot pass it to another"};
}

asio::awaitable<Result<SemaphoreStatus>> Backend::inspect_semaphore(std::string, TimePoint) {
  Result<SemaphoreStatus> result;
  result.failure.error = make_error_code(errc::not_supported);
  co_return result;
}

asio::awaitable<Failure> Backend::set_limit(std::string, std::uint32_t, TimePoint) {
  co_return Failure{make_error_code(errc::not_supported), "this store has no semaphores"};
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> Backend::list_semaphores(std::string,
                                                                               TimePoint) {
  Result<std::vector<SemaphoreStatus>> result;
  result.failure.error = make_error_code(errc::not_supported);
  co_return result;
}

asio::awaitable<EvictAnswer> Backend::evict_permits(EvictRequest, TimePoint) {
  EvictAnswer answer;
  answer.failure = {make_error_code(errc::not_supported), "this store has no semaphores"};
  co_return answer;
}

asio::awaitable<void> Backend::look_again(TimePoint /*deadline*/) { co_return; }

Job Backend::leave_behind(ClaimPtr /*claim*/) { return {}; }

bool Backend::watch_holder(const std::string&) { return false; }
void Backend::unwatch_holder(const std::string&) noexcept {}
void Backend::tell_holder_changed(const std::string&) {}

namespace {

RecordAnswer not_supported() {
  return {RecordStatus::failed,
          std::nullopt,
          {make_error_code(errc::not_supported), "this store takes no part in migrations"}};
}

Failure no_gates() {
  return {make_error_code(errc::not_supported), "this store cannot be under a plan's gate"};
}

}  // namespace

asio::awaitable<RecordAnswer> MigrationStore::record(std::string, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> MigrationStore::seal(ClaimPtr, std::string, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> MigrationStore::set_record(std::string name, std::string from,
                                                         std::optional<std::string> to,
                                                         std::uint64_t min_token,
                                                         TimePoint deadline) {
  return set_record_under(nullptr, std::move(name), std::move(from), std::move(to), min_token,
                          deadline);
}

asio::awaitable<RecordAnswer> MigrationStore::raise(ClaimPtr, std::uint64_t, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> MigrationStore::note(std::string, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> MigrationStore::set_note(std::string, std::optional<std::string>,
                                                       std::optional<std::string>, TimePoint) {
  co_return not_supported();
}

asio::awaitable<Result<std::chrono::milliseconds>> MigrationStore::time(TimePoint) {
  Result<std::chrono::milliseconds> result;
  result.failure = {make_error_code(errc::not_supported),
                    "this store has no clock that all its clients share, or keeps no notes that "
                    "last: scheduled runs need both"};
  co_return result;
}

asio::awaitable<RecordAnswer> MigrationStore::set_record_under(GatePtr, std::string, std::string,
                                                               std::optional<std::string>,
                                                               std::uint64_t, TimePoint) {
  co_return not_supported();
}

asio::awaitable<Result<std::vector<std::string>>> MigrationStore::claimed_names(std::string,
                                                                                TimePoint) {
  Result<std::vector<std::string>> result;
  result.failure = no_gates();
  co_return result;
}

asio::awaitable<Result<std::uint64_t>> MigrationStore::highest_token(TimePoint) {
  Result<std::uint64_t> result;
  result.failure = no_gates();
  co_return result;
}

MigrationStore& no_migration() noexcept {
  // Never destroyed: stores of static storage may ask after that.
  alignas(MigrationStore) static std::array<std::byte, sizeof(MigrationStore)> place;
  static auto& none = *::new (place.data()) MigrationStore;
  return none;
}

}  // namespace dlock::inline v0

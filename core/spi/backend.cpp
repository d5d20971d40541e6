// SPDX-License-Identifier: Apache-2.0
//
// What a backend need not have: each call answers that this store does not support it.
#include "dlock/backend.hpp"

namespace dlock::inline v0 {
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

asio::awaitable<RecordAnswer> Backend::record(std::string, TimePoint) { co_return not_supported(); }

asio::awaitable<RecordAnswer> Backend::seal(ClaimPtr, std::string, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> Backend::set_record(std::string, std::string,
                                                  std::optional<std::string>, std::uint64_t,
                                                  TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> Backend::raise(ClaimPtr, std::uint64_t, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> Backend::note(std::string, TimePoint) { co_return not_supported(); }

asio::awaitable<RecordAnswer> Backend::set_note(std::string, std::optional<std::string>,
                                                std::optional<std::string>, TimePoint) {
  co_return not_supported();
}

asio::awaitable<RecordAnswer> Backend::set_record_under(GatePtr, std::string, std::string,
                                                        std::optional<std::string>, std::uint64_t,
                                                        TimePoint) {
  co_return not_supported();
}

asio::awaitable<Result<std::vector<std::string>>> Backend::claimed_names(std::string, TimePoint) {
  Result<std::vector<std::string>> result;
  result.failure = no_gates();
  co_return result;
}

asio::awaitable<Result<std::uint64_t>> Backend::highest_token(TimePoint) {
  Result<std::uint64_t> result;
  result.failure = no_gates();
  co_return result;
}

}  // namespace dlock::inline v0

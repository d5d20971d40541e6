// SPDX-License-Identifier: Apache-2.0
//
// The requests of a plan's coordinator about all locks at once.
#include "backends/local/backend.hpp"
#include "backends/local/lock/gate.hpp"

namespace dlock::local {

asio::awaitable<Result<std::vector<std::string>>> LocalBackend::claimed_names(std::string prefix,
                                                                              TimePoint deadline) {
  look_at_path();
  auto result = std::make_shared<Result<std::vector<std::string>>>();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_, prefix = std::move(prefix)] {
    *result = read_claimed(*directory, prefix);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    Result<std::vector<std::string>> late;
    late.failure = helper_.why_late(path_);
    co_return late;
  }
  co_return std::move(*result);
}

asio::awaitable<Result<std::uint64_t>> LocalBackend::highest_token(TimePoint deadline) {
  look_at_path();
  auto result = std::make_shared<Result<std::uint64_t>>();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_] { *result = read_highest(*directory); };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    Result<std::uint64_t> late;
    late.failure = helper_.why_late(path_);
    co_return late;
  }
  co_return std::move(*result);
}

}  // namespace dlock::local

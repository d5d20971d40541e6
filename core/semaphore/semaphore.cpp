// SPDX-License-Identifier: Apache-2.0
#include "dlock/semaphore.hpp"

#include <fmt/format.h>

#include "dlock/lock_status.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {

Semaphore::Semaphore(std::string name, std::optional<std::uint32_t> limit, Permits permits)
    : name_(std::move(name)), limit_(limit), permits_(std::move(permits)) {}

std::shared_ptr<DistributedLock> Semaphore::permits(std::uint32_t count) const {
  const auto most = limit_.value_or(kMostPermits);
  if (count == 0 || count > most) {
    const auto refused = too_many_permits(name_, count, most);
    throw LockError(refused.error, {name_, {}, refused.text});
  }
  return permits_(count);
}

LockHandle Semaphore::acquire(std::uint32_t count, AcquireOptions options,
                              std::stop_token stop) const {
  return permits(count)->acquire(options, std::move(stop));
}

std::optional<LockHandle> Semaphore::try_acquire(std::uint32_t count, AcquireOptions options,
                                                 std::stop_token stop) const {
  return permits(count)->try_acquire(options, std::move(stop));
}

Failure wrong_limit(std::string_view semaphore, std::uint32_t asked, std::uint32_t stored) {
  return make_failure(
      errc::invalid_argument,
      fmt::format("semaphore '{0}' has {1} permits in the store, and {2} were said here; say {1}, "
                  "or make it {2} for all clients: dlock semaphore set {0} {2}",
                  semaphore, stored, asked));
}

Failure unknown_semaphore(std::string_view semaphore) {
  return make_failure(
      errc::invalid_argument,
      fmt::format("the store does not know how many permits semaphore '{0}' has; say it here, or "
                  "dlock semaphore set {0} N",
                  semaphore));
}

Failure too_many_permits(std::string_view semaphore, std::uint32_t permits, std::uint32_t limit) {
  return make_failure(
      errc::invalid_argument,
      fmt::format("{} permits of semaphore '{}': ask for 1 to {}", permits, semaphore, limit));
}

}  // namespace dlock::inline v0

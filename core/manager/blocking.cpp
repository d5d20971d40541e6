// SPDX-License-Identifier: Apache-2.0
//
// The blocking forms over the one asynchronous call: the caller sleeps until the loop has decided.
// Deadlines are the loop's business, so the caller's wait has none.
#include "core/loop/reply.hpp"
#include "core/manager/nesting.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::inline v0 {
namespace {

struct Outcome {
  error_code ec;
  LockHandle handle;
};

[[noreturn]] void fail(error_code ec, Diagnostics diagnostics, const DistributedLock& lock) {
  if (diagnostics.lock.empty()) diagnostics.lock = lock.name();
  throw LockError(ec, std::move(diagnostics));
}

/// Throws std::bad_alloc. Another exception of start_acquire() becomes an error.
LockHandle acquire_or_throw(DistributedLock& lock, AcquireOptions options, std::stop_token stop,
                            error_code& ec) {
  const NoCancellation uncancelled;
  try {
    core::note_asked(lock, options);
    auto reply = detail::make_recycled<core::Reply<Outcome>>();
    core::Driving::Intent intent;
    auto cancel = lock.start_acquire(options, [reply](error_code result, LockHandle got) {
      reply->set({result, std::move(got)});
    });
    const std::stop_callback stopper(std::move(stop), [&cancel] { cancel(); });
    auto outcome = reply->wait(intent);
    ec = outcome.ec;
    core::note_taken(outcome.handle);
    return std::move(outcome.handle);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    // Nothing has begun: an acquire that has begun reports its outcome by the reply.
    auto failure = failure_of(error);
    ec = failure.error;
    if (options.diagnostics != nullptr) options.diagnostics->server_text = std::move(failure.text);
    return {};
  }
}

}  // namespace

LockHandle DistributedLock::acquire(AcquireOptions options, std::stop_token stop,
                                    error_code& ec) noexcept {
  try {
    return acquire_or_throw(*this, options, std::move(stop), ec);
  } catch (const std::bad_alloc&) {
    ec = make_error_code(errc::unavailable);
    if (options.diagnostics != nullptr) options.diagnostics->server_text = "out of memory";
    return {};
  }
}

LockHandle DistributedLock::acquire(AcquireOptions options, std::stop_token stop) {
  Diagnostics diagnostics;
  auto* const wanted = std::exchange(options.diagnostics, &diagnostics);
  error_code ec;
  auto handle = acquire_or_throw(*this, options, std::move(stop), ec);
  if (wanted != nullptr) *wanted = diagnostics;
  if (ec) fail(ec, std::move(diagnostics), *this);
  return handle;
}

std::optional<LockHandle> DistributedLock::try_acquire(AcquireOptions options, std::stop_token stop,
                                                       error_code& ec) noexcept {
  if (!options.wait) options.wait = std::chrono::milliseconds(0);
  auto handle = acquire(options, std::move(stop), ec);
  if (ec == errc::timed_out) ec = {};
  if (!handle) return std::nullopt;
  return handle;
}

std::optional<LockHandle> DistributedLock::try_acquire(AcquireOptions options,
                                                       std::stop_token stop) {
  if (!options.wait) options.wait = std::chrono::milliseconds(0);
  Diagnostics diagnostics;
  auto* const wanted = std::exchange(options.diagnostics, &diagnostics);
  error_code ec;
  auto handle = acquire_or_throw(*this, options, std::move(stop), ec);
  if (wanted != nullptr) *wanted = diagnostics;
  if (ec && ec != errc::timed_out) fail(ec, std::move(diagnostics), *this);
  if (!handle) return std::nullopt;
  return handle;
}

}  // namespace dlock::inline v0

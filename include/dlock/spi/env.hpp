// SPDX-License-Identifier: Apache-2.0
//
// Env: time, timers, random numbers and helper threads; dlock uses no others. The real one runs on
// Asio and a timerfd on CLOCK_BOOTTIME. The simulation's runs the same coroutines under virtual
// time. No clock is read and no timer is made anywhere else.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "dlock/clock.hpp"
#include "dlock/detail/unique_function.hpp"

namespace dlock::inline v0 {

namespace asio = boost::asio;
using Job = detail::UniqueFunction<void()>;

/// Names a timer of one Env; 0 names none.
using TimerId = std::uint64_t;

class Env {
 public:
  virtual ~Env() = default;

  /// The present moment on the clock of leases. Any thread.
  virtual TimePoint now() const noexcept = 0;

  /// Milliseconds since 1970 on the wall clock: for people and for metadata, never for a decision.
  /// Any thread.
  virtual std::int64_t wall_clock_ms() const noexcept = 0;

  /// Uniform 64 bits. Any thread.
  virtual std::uint64_t random() noexcept = 0;

  /// The loop: runs one handler at a time.
  virtual asio::any_io_executor executor() const = 0;

  /// Calls `job` on the loop soon, never inside this call, in the order of the calls. Any thread.
  virtual void post(Job job) noexcept = 0;

  /// Calls `job` on the loop at or soon after `when`, never inside this call. Loop only.
  virtual TimerId call_at(TimePoint when, Job job) = 0;
  /// The job will not run. Harmless if it ran already, or for id 0. Loop only.
  virtual void cancel(TimerId id) noexcept = 0;

  /// Runs `job` on a helper thread (it may block, bounded), then `done` on the loop. If no thread
  /// can be made the job waits until one can. A coroutine that awaits `done` needs its own
  /// deadline. Loop only.
  virtual void run_blocking(Job job, Job done) = 0;

  /// Runs a job that may never end, such as a name lookup, as run_blocking() does. The end of the
  /// Env does not wait for it: `done` is dropped then, and `job` continues alone. `job` owns all
  /// that it uses. Loop only.
  virtual void run_unbounded(Job job, Job done) { run_blocking(std::move(job), std::move(done)); }
};

/// A random v4 UUID, lower case, 36 characters.
std::string make_uuid(Env& env);

}  // namespace dlock::inline v0

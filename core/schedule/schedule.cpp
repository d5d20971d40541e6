// SPDX-License-Identifier: Apache-2.0
#include "dlock/schedule.hpp"

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/leader/alarms.hpp"
#include "core/loop/crew.hpp"
#include "core/manager/manager_access.hpp"
#include "core/process/exhausted.hpp"
#include "core/schedule/record.hpp"
#include "core/schedule/rules.hpp"
#include "core/schedule/runs.hpp"
#include "dlock/clock.hpp"
#include "dlock/linked_stop.hpp"

namespace dlock::inline v0 {
namespace {

using std::chrono::milliseconds;

/// Usually the holder of the lock is about to write a run.
constexpr milliseconds kSlice{100};
constexpr milliseconds kRecordingPatience{2000};

}  // namespace

struct ScheduledRun::Impl {
  Impl(core::Runs of, std::shared_ptr<core::Engine> by, LockHandle held, RunRecord as,
       TimePoint until, bool recorded)
      : runs(std::move(of)),
        engine(std::move(by)),
        handle(std::move(held)),
        record(std::move(as)),
        over_at(until),
        is_recorded(recorded),
        stop(overrun.get_token(), handle.stop_token()),
        alarm(
            core::set_alarm(until, [engine = engine, stop = overrun]() -> std::optional<TimePoint> {
              engine->post_callback(core::make_errand([stop]() mutable { stop.request_stop(); }));
              return std::nullopt;
            })) {}
  ~Impl() { core::clear_alarm(alarm); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  RunRecord::Outcome outcome(bool succeeded) const {
    if (handle.state() == HandleState::lost) return RunRecord::Outcome::lost;
    if (!succeeded && BoottimeClock::now() >= over_at) return RunRecord::Outcome::overran;
    return succeeded ? RunRecord::Outcome::succeeded : RunRecord::Outcome::failed;
  }
  bool write_end(RunRecord::Outcome how, std::optional<int> status);

  core::Runs runs;
  const std::shared_ptr<core::Engine> engine;
  LockHandle handle;
  const RunRecord record;
  const TimePoint over_at;
  const bool is_recorded;  ///< false: ScheduleOptions::again
  std::stop_source overrun;
  LinkedStop stop;
  const core::AlarmId alarm;
  bool has_ended = false;
};

/// False: another run is recorded.
bool ScheduledRun::Impl::write_end(RunRecord::Outcome how, std::optional<int> status) {
  if (!is_recorded) return true;
  auto ended = record;
  ended.outcome = how;
  ended.status = status;
  ended.ended = runs.look().now;
  return runs.replace(core::to_text(record), core::to_text(ended));
}

ScheduledRun::ScheduledRun(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ScheduledRun::ScheduledRun(ScheduledRun&&) noexcept = default;
ScheduledRun& ScheduledRun::operator=(ScheduledRun&& other) noexcept {
  if (this == &other) return *this;
  finish(false);
  impl_ = std::move(other.impl_);
  return *this;
}
ScheduledRun::~ScheduledRun() { finish(false); }

LockHandle& ScheduledRun::handle() noexcept { return impl_->handle; }
const RunRecord& ScheduledRun::record() const noexcept { return impl_->record; }
std::stop_token ScheduledRun::stop_token() const noexcept { return impl_->stop.token(); }
std::chrono::nanoseconds ScheduledRun::remaining() const noexcept {
  return std::max<Duration>(impl_->over_at - BoottimeClock::now(), Duration::zero());
}

// The end is written under the lock: the next holder finds it.
error_code ScheduledRun::finish(bool succeeded, std::optional<int> status) noexcept {
  if (!impl_ || std::exchange(impl_->has_ended, true)) return {};
  core::clear_alarm(impl_->alarm);
  error_code failed;
  const auto how = impl_->outcome(succeeded);
  try {
    const bool is_ours = impl_->write_end(how, status);
    if (!is_ours) failed = make_error_code(errc::lock_lost);
  } catch (const LockError& error) {
    failed = error.code();
  } catch (const std::exception&) {
    failed = make_error_code(errc::unavailable);
  }
  const auto released = impl_->handle.release();
  if (released == errc::lock_lost || how == RunRecord::Outcome::lost) {
    return make_error_code(errc::lock_lost);
  }
  return failed;
}

struct Schedule::Impl {
  Impl(LockManager& locks, std::string name, ScheduleOptions how)
      : engine(detail::ManagerAccess::engine(locks)),
        runs(engine, name),
        lock(locks.lock(std::move(name))),
        options(how) {}

  std::optional<LockHandle> take();
  bool refuses(const core::Runs::Seen& seen, RunRefusal& why) const;
  /// Under the lock. Empty: it is not due any more.
  std::unique_ptr<ScheduledRun::Impl> begin(LockHandle held, RunRefusal& why);

  const std::shared_ptr<core::Engine> engine;
  core::Runs runs;
  const std::shared_ptr<DistributedLock> lock;
  const ScheduleOptions options;
};

std::optional<LockHandle> Schedule::Impl::take() {
  AcquireOptions how;
  how.wait = kSlice;
  how.lease = options.lease;
  Diagnostics diagnostics;
  how.diagnostics = &diagnostics;
  error_code ec;
  auto held = lock->try_acquire(how, {}, ec);
  if (ec) throw LockError(ec, diagnostics);
  return held;
}

bool Schedule::Impl::refuses(const core::Runs::Seen& seen, RunRefusal& why) const {
  why.reason = core::refusal(seen.last, seen.now, options);
  why.last = seen.last;
  why.now = seen.now;
  return why.reason != RunRefusal::Reason::none;
}

// The run's time counts from before the store was asked. So a pause of this process in here
// shortens the rest of it. If no rest is left, the run does not begin.
std::unique_ptr<ScheduledRun::Impl> Schedule::Impl::begin(LockHandle held, RunRefusal& why) {
  const auto over_at = BoottimeClock::now() + options.at_most_for;
  const auto seen = runs.look();
  if (refuses(seen, why)) {
    held.release();
    return nullptr;
  }
  auto run = core::begun(options, seen.now, seen.me);
  run.token = held.token();
  run.owner.id = boost::uuids::to_string(boost::uuids::random_generator()());
  // First all that can be missing: a run that is written down counts, also if it never began.
  std::unique_ptr<ScheduledRun::Impl> begun;
  try {
    begun = std::make_unique<ScheduledRun::Impl>(runs, engine, std::move(held), std::move(run),
                                                 over_at, !options.again);
  } catch (const std::system_error& error) {
    auto failure = core::out_of_threads(error.code());
    throw LockError(failure.error, {runs.name(), runs.store(), std::move(failure.text)});
  }
  if (begun->is_recorded && !runs.replace(seen.text, core::to_text(begun->record))) {
    begun->handle.release();
    refuses(runs.look(), why);
    return nullptr;
  }
  error_code lost;
  begun->handle.check(lost);
  if (!lost && BoottimeClock::now() < over_at) return begun;
  begun->write_end(RunRecord::Outcome::lost, std::nullopt);
  begun->handle.release();
  throw LockError(make_error_code(errc::lock_lost),
                  {runs.name(), runs.store(), "this process was paused while it began its run"});
}

Schedule::Schedule(LockManager& locks, std::string name, ScheduleOptions options)
    : impl_(std::make_unique<Impl>(locks, std::move(name), options)) {
  if (auto wrong = refused(options); !wrong.empty()) {
    throw LockError(make_error_code(errc::invalid_argument),
                    {impl_->runs.name(), impl_->runs.store(), std::move(wrong)});
  }
}
Schedule::~Schedule() = default;

std::optional<ScheduledRun> Schedule::try_begin(RunRefusal* why) {
  RunRefusal unasked;
  auto& told = why != nullptr ? *why : unasked;
  const auto until = BoottimeClock::now() + kRecordingPatience;
  do {
    // Most processes are too late: they need not acquire the lock to see that.
    if (impl_->refuses(impl_->runs.look(), told)) return std::nullopt;
    auto held = impl_->take();
    if (!held) {
      told.reason = RunRefusal::Reason::busy;
      continue;
    }
    auto begun = impl_->begin(std::move(*held), told);
    if (begun) return ScheduledRun(std::move(begun));
    if (told.reason != RunRefusal::Reason::none) return std::nullopt;
  } while (BoottimeClock::now() < until);
  if (told.reason == RunRefusal::Reason::none) told.reason = RunRefusal::Reason::busy;
  return std::nullopt;
}

bool Schedule::run(const std::function<void(std::stop_token stop)>& work, RunRefusal* why) {
  auto begun = try_begin(why);
  if (!begun) return false;
  try {
    work(begun->stop_token());
  } catch (...) {
    begun->finish(false);
    throw;
  }
  const auto ended = begun->finish(true);
  if (ended) {
    throw LockError(ended, {impl_->runs.name(), impl_->runs.store(),
                            "the work was done, and its end could not be written"});
  }
  return true;
}

std::optional<RunRecord> Schedule::last(LockManager& locks, const std::string& name) {
  return core::Runs(detail::ManagerAccess::engine(locks), name).last();
}

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
#include "dlock/leader.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/leader/alarms.hpp"
#include "core/leader/at_exit.hpp"
#include "core/leader/holder.hpp"
#include "core/leader/observers.hpp"
#include "core/leader/times.hpp"
#include "core/loop/crew.hpp"
#include "core/manager/engine.hpp"
#include "core/manager/manager_access.hpp"
#include "core/process/exhausted.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/linked_stop.hpp"
#include "dlock/spi/fork.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::inline v0 {

using std::chrono::milliseconds;

class Leader::Impl final : public core::EndsAtExit, public std::enable_shared_from_this<Impl> {
 public:
  Impl(LockManager& locks, std::string name, Work work, LeaderOptions options)
      : engine_(detail::ManagerAccess::engine(locks)),
        lock_(locks.lock(std::move(name))),
        work_(std::move(work)),
        options_(std::move(options)) {
    if (auto wrong = refused(options_.times); !wrong.empty()) {
      throw LockError(make_error_code(errc::invalid_argument),
                      {lock_->name(), lock_->store(), std::move(wrong)});
    }
  }

  const std::string& name() const noexcept { return lock_->name(); }
  /// True in a child of the process that campaigned. Before a campaign any process may use it.
  bool is_foreign() const noexcept { return has_stood_ && fork_generation() != generation_; }

  void campaign(std::stop_token stop);
  void resign() noexcept;
  error_code wait() noexcept;
  bool is_leader() noexcept;
  std::optional<std::uint64_t> token() const noexcept;
  std::optional<Owner> who() const;
  void observe(Observer observer);
  void end() noexcept;

  void request_end() noexcept override;
  void wait_end(std::chrono::steady_clock::time_point until) noexcept override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Next { again, pause, over };

  void run(const std::stop_token& outer);
  Next stand(const std::stop_token& stop);
  Next lead(LockHandle handle, const std::stop_token& stop);
  std::string serve_term(const std::stop_token& stop, const std::stop_token& loss);
  std::string do_work(const std::stop_token& stop);
  void begin_term(LockHandle handle);
  LeaderEvent end_term();
  std::optional<TimePoint> next_alarm_locked() const noexcept;
  std::optional<TimePoint> on_alarm();
  bool is_over_locked() noexcept;
  void sleep(Duration pause, const std::stop_token& stop);
  void tell(const LeaderEvent& event);
  void tell_observers();

  const std::shared_ptr<core::Engine> engine_;
  const std::shared_ptr<DistributedLock> lock_;
  const Work work_;
  const LeaderOptions options_;
  std::atomic<unsigned> generation_ = fork_generation();
  std::atomic<bool> has_stood_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stands_ = false;
  error_code ended_by_;
  std::stop_source campaign_stop_;
  std::thread thread_;
  std::thread::id thread_id_;
  std::vector<core::ObserverId> observers_;

  // The present term.
  LockHandle handle_;
  std::optional<std::uint64_t> token_;
  std::optional<Duration> full_;  ///< rest of the lease when it was granted
  Duration to_stop_{0};           ///< gives up with this rest
  bool gives_up_ = false;
  std::stop_source term_stop_;
  core::AlarmId alarm_ = 0;
};

namespace {

std::uint64_t any_number() {
  thread_local std::minstd_rand numbers(std::random_device{}());
  return numbers();
}

/// Returns the cause, with the limit to raise.
std::string why_not(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  return of_system ? core::out_of_threads(of_system->code()).text : error.what();
}

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace

void Leader::Impl::campaign(std::stop_token stop) {
  if (is_foreign()) {
    throw LockError(make_error_code(errc::closed),
                    {name(), lock_->store(), "this process is a fork()ed child; make another"});
  }
  core::end_at_exit(shared_from_this());
  Lock lock(mutex_);
  generation_ = fork_generation();
  has_stood_ = true;
  if (stands_) return;
  if (thread_.joinable()) thread_.join();  // it has done its last
  campaign_stop_ = std::stop_source();
  ended_by_ = {};
  try {
    thread_ =
        start_thread([self = shared_from_this(), stop = std::move(stop)] { self->run(stop); });
  } catch (const std::system_error& error) {
    throw LockError(make_error_code(errc::unavailable), {name(), lock_->store(), why_not(error)});
  }
  thread_id_ = thread_.get_id();
  stands_ = true;
}

void Leader::Impl::run(const std::stop_token& outer) {
  error_code why;
  try {
    Lock begun(mutex_);
    const LinkedStop stop(outer, campaign_stop_.get_token());
    begun.unlock();
    auto next = Next::again;
    while (next != Next::over && !stop.token().stop_requested()) {
      next = stand(stop.token());
      if (next != Next::pause) continue;
      sleep(core::pause_before(options_.times, full_, any_number()), stop.token());
    }
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    LeaderEvent event;
    event.kind = LeaderEvent::Kind::gave_up;
    event.error = why = make_error_code(errc::unavailable);
    event.text = why_not(error);
    tell(event);
  }
  const Lock lock(mutex_);
  if (why) ended_by_ = why;
  stands_ = false;
  changed_.notify_all();
}

Leader::Impl::Next Leader::Impl::stand(const std::stop_token& stop) {
  Diagnostics diagnostics;
  AcquireOptions how;
  how.wait = kWaitForever;
  how.lease = options_.times.lease;
  how.diagnostics = &diagnostics;
  error_code ec;
  auto handle = lock_->acquire(how, stop, ec);
  if (!ec) return lead(std::move(handle), stop);
  if (stop.stop_requested()) return Next::over;
  LeaderEvent event;
  const bool again = core::may_pass(ec);
  event.kind = again ? LeaderEvent::Kind::retrying : LeaderEvent::Kind::gave_up;
  event.error = ec;
  event.text = diagnostics.server_text;
  if (!again) {
    const Lock lock(mutex_);
    ended_by_ = ec;
  }
  tell(event);
  return again ? Next::pause : Next::over;
}

// The order of every end: the work has returned, is_leader() is false, the lock is released.
Leader::Impl::Next Leader::Impl::lead(LockHandle handle, const std::stop_token& stop) {
  const auto loss = handle.stop_token();
  try {
    begin_term(std::move(handle));
  } catch (const std::system_error& error) {  // no thread would stop its work in time
    LeaderEvent event;
    event.kind = LeaderEvent::Kind::retrying;
    event.error = make_error_code(errc::unavailable);
    event.text = why_not(error);
    tell(event);
    return Next::pause;
  }
  const auto failure = serve_term(stop, loss);
  auto event = end_term();
  tell_observers();
  const bool was_lost = event.kind == LeaderEvent::Kind::lost;
  if (!failure.empty()) {
    event.kind = LeaderEvent::Kind::work_failed;
    event.text = failure;
  }
  tell(event);
  if (stop.stop_requested()) return Next::over;
  if (was_lost || !failure.empty()) return Next::pause;
  return options_.stand_again ? Next::again : Next::over;
}

/// As do_work(), after a report to all observers.
std::string Leader::Impl::serve_term(const std::stop_token& stop, const std::stop_token& loss) {
  Lock lock(mutex_);
  const LinkedStop told(stop, term_stop_.get_token());
  LeaderEvent elected;
  elected.token = token_;
  lock.unlock();
  const LinkedStop all(told.token(), loss);
  tell_observers();
  tell(elected);
  return do_work(all.token());
}

/// Returns the text of the exception; empty: none.
std::string Leader::Impl::do_work(const std::stop_token& stop) {
  if (stop.stop_requested()) return {};
  if (!work_) {
    sleep(Duration::max(), stop);
    return {};
  }
  try {
    work_(stop);
    return {};
  } catch (...) {
    return text_of(std::current_exception());
  }
}

void Leader::Impl::begin_term(LockHandle handle) {
  const Lock lock(mutex_);
  term_stop_ = std::stop_source();
  handle_ = std::move(handle);
  token_ = handle_.token();
  full_ = handle_.remaining();
  gives_up_ = false;
  to_stop_ = full_ ? core::time_to_stop(options_.times, *full_) : Duration::zero();
  if (full_) detail::GrantAccess::grant(handle_)->renew_within(*full_ - to_stop_);
  const auto when = next_alarm_locked();
  if (!when) return;
  try {
    alarm_ = core::set_alarm(*when, [weak = weak_from_this()]() -> std::optional<TimePoint> {
      const auto self = weak.lock();
      return self ? self->on_alarm() : std::nullopt;
    });
  } catch (...) {
    token_.reset();
    LockHandle dropped;
    std::swap(dropped, handle_);
    throw;
  }
}

LeaderEvent Leader::Impl::end_term() {
  LeaderEvent event;
  LockHandle ending;
  {
    const Lock lock(mutex_);
    core::clear_alarm(std::exchange(alarm_, 0));
    const bool lost = handle_ && handle_.state() == HandleState::lost;
    event.kind = lost || gives_up_ ? LeaderEvent::Kind::lost : LeaderEvent::Kind::resigned;
    event.reason = lost ? handle_.loss_reason() : LossReason::none;
    event.token = std::exchange(token_, std::nullopt);
    ending = std::move(handle_);
  }
  const auto released = ending ? ending.release() : error_code();
  if (released == errc::lock_lost && event.reason == LossReason::none) {
    event.kind = LeaderEvent::Kind::lost;
    event.reason = LossReason::removed;
  }
  event.error = released;
  return event;
}

/// Returns when it has to give up, if no renewal is confirmed before.
std::optional<TimePoint> Leader::Impl::next_alarm_locked() const noexcept {
  const auto left = handle_.remaining();
  if (!left) return std::nullopt;
  return BoottimeClock::now() + std::max(*left - to_stop_, Duration::zero());
}

std::optional<TimePoint> Leader::Impl::on_alarm() {
  const Lock lock(mutex_);
  if (alarm_ == 0 || !handle_) return std::nullopt;
  if (!is_over_locked()) return next_alarm_locked();
  engine_->post_callback(core::make_errand([stop = term_stop_]() mutable { stop.request_stop(); }));
  return std::nullopt;
}

/// Once true, it stays true: later renewals change nothing.
bool Leader::Impl::is_over_locked() noexcept {
  if (gives_up_) return true;
  if (handle_.state() == HandleState::lost) return true;
  const auto left = handle_.remaining();
  gives_up_ = left && *left <= to_stop_;
  return gives_up_;
}

bool Leader::Impl::is_leader() noexcept {
  if (is_foreign()) return false;
  const Lock lock(mutex_);
  return handle_ && !is_over_locked();
}

std::optional<std::uint64_t> Leader::Impl::token() const noexcept {
  if (is_foreign()) return std::nullopt;
  const Lock lock(mutex_);
  return token_;
}

void Leader::Impl::sleep(Duration pause, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const Lock lock(mutex_);
    changed_.notify_all();
  });
  const auto stopped = [&stop] { return stop.stop_requested(); };
  Lock lock(mutex_);
  if (pause == Duration::max()) return changed_.wait(lock, stopped);
  changed_.wait_for(lock, pause, stopped);
}

void Leader::Impl::request_end() noexcept {
  Lock lock(mutex_);
  auto stop = campaign_stop_;
  lock.unlock();
  stop.request_stop();
}

void Leader::Impl::wait_end(std::chrono::steady_clock::time_point until) noexcept {
  Lock lock(mutex_);
  if (!stands_) return;
  if (thread_id_ != std::this_thread::get_id()) {
    changed_.wait_until(lock, until, [this] { return !stands_; });
    return;
  }
  // exit() by the work: it has ended, since that never returns.
  LockHandle ending;
  std::swap(ending, handle_);
  lock.unlock();
  ending.release();
}

void Leader::Impl::resign() noexcept {
  if (is_foreign()) return;
  request_end();
  wait();
}

error_code Leader::Impl::wait() noexcept {
  if (is_foreign()) return make_error_code(errc::closed);
  Lock lock(mutex_);
  if (thread_id_ == std::this_thread::get_id()) return {};
  const auto ended = [this] { return !stands_; };
  if (const auto until = core::exit_deadline()) {
    changed_.wait_until(lock, *until, ended);
  } else {
    changed_.wait(lock, ended);
  }
  if (stands_) return make_error_code(errc::timed_out);
  if (thread_.joinable()) thread_.join();
  return ended_by_;
}

/// The Leader is gone.
void Leader::Impl::end() noexcept {
  if (is_foreign()) return;
  for (const auto id : observers_) {
    core::stop_observing(id);
    if (generation_ != fork_generation()) continue;
    or_end([&] { core::unwatch_holder(*engine_, name(), id); });
  }
  resign();
  const Lock lock(mutex_);
  if (thread_.joinable()) thread_.detach();  // this thread, or exit() stopped waiting for it
}

std::optional<Owner> Leader::Impl::who() const {
  auto status = core::status_of(*engine_, name());
  if (!status.held) return std::nullopt;
  if (!status.owner) status.owner.emplace();
  return std::move(status.owner);
}

void Leader::Impl::observe(Observer observer) {
  core::Observation what;
  what.look = [engine = engine_, name = name()](core::LookDone done) {
    core::look_at_holder(*engine, name, std::move(done));
  };
  what.tell = std::move(observer);
  what.every = options_.observe_every;
  Lock lock(mutex_);
  observers_.reserve(observers_.size() + 1);
  try {
    observers_.push_back(core::observe(std::move(what)));
  } catch (const std::system_error& error) {
    throw LockError(make_error_code(errc::unavailable), {name(), lock_->store(), why_not(error)});
  }
  const auto id = observers_.back();
  lock.unlock();
  core::watch_holder(*engine_, name(), id);
}

/// The lead has passed to us, or from us.
void Leader::Impl::tell_observers() {
  core::tell_holder_changed(*engine_, name());
  const Lock lock(mutex_);
  for (const auto id : observers_) core::look_now(id);
}

void Leader::Impl::tell(const LeaderEvent& event) {
  if (!options_.on_event) return;
  try {
    options_.on_event(event);
  } catch (...) {
    engine_->log(LogLevel::error, "leader '" + name() + "': on_event threw an exception: " +
                                      text_of(std::current_exception()));
  }
}

Leader::Leader(LockManager& locks, std::string name, Work on_elected, LeaderOptions options)
    : impl_(std::make_shared<Impl>(locks, std::move(name), std::move(on_elected),
                                   std::move(options))) {}

Leader::~Leader() { impl_->end(); }
const std::string& Leader::name() const noexcept { return impl_->name(); }
void Leader::campaign(std::stop_token stop) { impl_->campaign(std::move(stop)); }
void Leader::resign() noexcept { impl_->resign(); }
error_code Leader::wait() noexcept { return impl_->wait(); }
bool Leader::is_leader() const noexcept { return impl_->is_leader(); }
std::optional<std::uint64_t> Leader::token() const noexcept { return impl_->token(); }
std::optional<Owner> Leader::who() const { return impl_->who(); }
void Leader::on_leader_changed(Observer observer) { impl_->observe(std::move(observer)); }

}  // namespace dlock::inline v0

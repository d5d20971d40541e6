// SPDX-License-Identifier: Apache-2.0
#include "core/loop/driving.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "core/loop/halt_poll.hpp"
#include "dlock/detail/out_of_memory.hpp"

namespace dlock::core {
namespace {

/// How late a timer of the loop's, or a message, may be noticed after a caller has left it.
constexpr std::chrono::milliseconds kNap{1};
/// The same while a caller leads, or calls arrive again and again. It needs a loop that was never
/// given work without a waiting call. Timers run all the same, and no message is expected on the
/// sockets.
constexpr std::chrono::milliseconds kLongNap{5};
/// Number of calls in one nap that counts as again and again.
constexpr std::uint64_t kBusy = 2;
/// After this number of naps under the same caller the loop's thread sleeps until that leaves.
constexpr int kNaps = 20;
/// The loop's thread serves callers that arrive in pairs, and work without a waiting call, for this
/// time after the last of them.
constexpr std::chrono::milliseconds kCrowd{10};
/// Stack that a handler of a store may need, generously: some write into buffers on the stack.
constexpr std::size_t kStack = std::size_t{256} * 1024;
/// A thread's priority may change.
constexpr std::chrono::milliseconds kLookAgain{100};

/// Returns the scheduling of the calling thread.
Scheduling scheduling() noexcept {
  Scheduling of_this;
  of_this.policy = ::sched_getscheduler(0);
  sched_param param{};
  if (::sched_getparam(0, &param) == 0) of_this.priority = param.sched_priority;
  of_this.nice = ::getpriority(PRIO_PROCESS, 0);  // Linux: of the thread
  return of_this;
}

/// Properties of the calling thread, read again now and then.
struct Here {
  TimePoint looked_at{};
  Scheduling scheduling;
  bool has_looked = false;
  const char* stack_begin = nullptr;  ///< unknown: both null
  const char* stack_end = nullptr;

  void look(TimePoint now) noexcept {
    if (!std::exchange(has_looked, true)) find_stack();
    if (now < looked_at + kLookAgain) return;
    scheduling = dlock::core::scheduling();
    looked_at = now;
  }
  void find_stack() noexcept {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t size = 0;
    if (::pthread_attr_getstack(&attributes, &begin, &size) == 0) {
      stack_begin = static_cast<const char*>(begin);
      stack_end = stack_begin + size;
    }
    ::pthread_attr_destroy(&attributes);
  }
  /// False also on a separate stack, such as a coroutine's.
  bool has_room() const noexcept {
    const char* const top = static_cast<const char*>(__builtin_frame_address(0));
    return stack_begin < top && top < stack_end &&
           static_cast<std::size_t>(top - stack_begin) >= kStack;
  }
};

thread_local Here here;

}  // namespace

thread_local Driving::Intent* Driving::Intent::open = nullptr;

Driving::Intent::Intent() noexcept : outer_(std::exchange(open, this)) {}

Driving::Intent::~Intent() {
  if (const auto forgotten = close()) forgotten->see_to_posted();
}

/// From now on posts are not collected here any more.
std::shared_ptr<Driving> Driving::Intent::close() noexcept {
  if (open == this) open = outer_;
  return std::exchange(posted_, nullptr);
}

void Driving::Intent::push() noexcept {
  if (const auto to = close()) to->push();
}

void Driving::Intent::wait(Awaited& awaited) {
  if (const auto to = close()) return to->wait(awaited);
  awaited.sleep(nullptr);
}

bool Driving::Intent::takes(Driving& to) noexcept {
  if (!posted_) posted_ = to.shared_from_this();
  return posted_.get() == &to;
}

bool Driving::takes_post() noexcept {
  return Intent::open != nullptr && Intent::open->takes(*this);
}

void Driving::on_post() noexcept {
  const Lock lock(mutex_);
  if (leader_ != Leader::nobody || is_wanted_) return;
  is_wanted_ = true;
  changed_.notify_all();
}

void Driving::see_to_posted() noexcept {
  env_.see_to_posted();
  on_post();
}

// Without the loop's own thread, no thread would continue the work that a caller leaves.
bool Driving::begin() noexcept {
  if (!callers_lead_) return false;
  here.look(BoottimeClock::now());
  const auto& who = here.scheduling;
  const Lock lock(mutex_);
  const bool may = who.policy == own_.policy && who.priority == own_.priority &&
                   who.nice <= own_.nice && here.has_room();
  const bool is_free = leader_ == Leader::nobody && is_running_ && !is_stopped_ && !is_wanted_ &&
                       waiting_.load(std::memory_order_relaxed) == 0;
  if (!may || !is_free) return false;
  leader_ = Leader::caller;
  ++leads_;
  yield_.store(false, std::memory_order_relaxed);
  return true;
}

void Driving::end() noexcept {
  const auto due = env_.next_due();
  const auto now = BoottimeClock::now();
  const Lock lock(mutex_);
  leader_ = Leader::nobody;
  was_led_ = true;
  // Work that a timer began continues without the caller.
  if (std::exchange(due_, due) <= now) has_rung_ = true;
  is_wanted_ = is_wanted_ || env_.has_posted() || is_crowded();
  const bool naps_too_long = wakes_at_ > now + kNap && leaves_something();
  if (is_asleep_ || is_wanted_ || is_stopped_ || naps_too_long || due < wakes_at_ ||
      waiting_.load(std::memory_order_relaxed) > 0) {
    changed_.notify_all();
  }
}

bool Driving::leaves_something() const noexcept {
  return has_rung_ || has_unawaited_.load(std::memory_order_relaxed);
}

void Driving::wait(Awaited& awaited) {
  if (begin()) {
    auto& io = env_.context();
    run_posted();
    while (!awaited.is_over() && !io.stopped() && !yield_.load(std::memory_order_relaxed)) {
      run([&io] { io.run_one(); });
    }
    end();
    if (awaited.is_over()) return;
  }
  visits_.fetch_add(1, std::memory_order_relaxed);
  env_.see_to_posted();
  awaited.sleep(shared_from_this());
}

void Driving::push() noexcept {
  has_unawaited_.store(true, std::memory_order_relaxed);
  if (!begin()) return see_to_posted();
  run_posted();
  end();
}

void Driving::run_posted() noexcept {
  run([this] { env_.run_posted(); });
}

void Driving::follow() noexcept {
  const int waiting = waiting_.fetch_add(1, std::memory_order_relaxed) + 1;
  const Lock lock(mutex_);
  if (leader_ == Leader::nobody) return changed_.notify_all();
  if (leader_ == Leader::own && waiting == 1) return;
  crowd();
  if (leader_ == Leader::own) return;
  yield_.store(true, std::memory_order_relaxed);
  env_.interrupt();
}

template <class Handlers>
void Driving::run(Handlers handlers) noexcept {
  or_end([&] {
    try {
      handlers();
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      on_exception_(error.what());
    } catch (...) {
      on_exception_("an exception of an unknown type");
    }
  });
}

void Driving::run_here(OnException on_exception) {
  const auto own = scheduling();
  Lock lock(mutex_);
  own_ = own;
  on_exception_ = std::move(on_exception);
  is_running_ = true;
  while (nap(lock)) {
    leader_ = Leader::own;
    is_wanted_ = false;
    lock.unlock();
    lead();
    lock.lock();
    leader_ = Leader::nobody;
    was_led_ = true;
    due_ = env_.next_due();
  }
  is_running_ = false;
}

/// Returns when the loop's thread has to lead; false: at the end.
bool Driving::nap(Lock& lock) {
  auto leads = leads_;
  int naps = 0;  // during one lead
  while (!is_stopped_) {
    const auto now = BoottimeClock::now();
    const bool is_free = leader_ == Leader::nobody;
    if (is_free && (is_wanted_ || waiting_ > 0 || !was_led_ || due_ <= now)) return true;
    const auto more = leads_ - std::exchange(leads, leads_);
    const bool is_busy = !is_free || more >= kBusy;
    Duration nap = is_busy && !leaves_something() ? kLongNap : kNap;
    has_rung_ = false;
    if (is_free) nap = std::min(nap, due_ - now);
    wakes_at_ = now + nap;
    naps = more == 0 && !is_free ? naps + 1 : 0;
    if (is_free || naps < kNaps) {
      if (is_free) was_led_ = false;
      changed_.wait_for(lock, nap);
    } else {
      // The same caller for so long: it waits for something, and says when it leaves.
      is_asleep_ = true;
      changed_.wait(lock);
      is_asleep_ = false;
    }
  }
  return false;
}

/// Leads until the waiting callers have been answered: the next call may follow at once, and be
/// alone.
void Driving::lead() {
  auto& io = env_.context();
  HaltPoll idle;
  auto visits = visits_.load(std::memory_order_relaxed);
  bool has_callers = waiting_.load(std::memory_order_relaxed) > 0;
  while (!io.stopped()) {
    run([&io] { io.poll(); });
    has_callers = has_callers || visits != visits_.load(std::memory_order_relaxed);
    if (has_callers && waiting_.load(std::memory_order_relaxed) == 0 && !is_crowded()) return;
    if (io.stopped()) return;
    run([&io, &idle] {
      idle.wait([&io] { return io.poll_one() > 0 || io.stopped(); }, [&io] { io.run_one(); });
    });
  }
}

void Driving::on_work() noexcept {
  if (Intent::open != nullptr) return;
  has_unawaited_.store(true, std::memory_order_relaxed);
  crowd();
}

void Driving::crowd() noexcept {
  crowded_at_.store(BoottimeClock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

bool Driving::is_crowded() const noexcept {
  const Duration last(crowded_at_.load(std::memory_order_relaxed));
  return BoottimeClock::now().time_since_epoch() < last + kCrowd;
}

void Driving::stop() noexcept {
  Lock lock(mutex_);
  is_stopped_ = true;
  env_.context().stop();
  changed_.notify_all();
  changed_.wait(lock, [this] { return leader_ != Leader::caller; });
}

}  // namespace dlock::core

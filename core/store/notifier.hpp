// SPDX-License-Identifier: Apache-2.0
//
// Notifier: the state of one grant, and the notifications of its handle: the stop token and the
// callbacks. One call of user code runs at a time, without the mutex. The owner chooses the thread:
//
//   auto lock = notifier.lock();
//   notifier.become(lock, HandleState::suspect, LossReason::none);
//   if (notifier.begin(lock)) notifier.notify(lock);
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <variant>

#include "dlock/detail/grant.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::core {

inline bool is_final(HandleState state) noexcept {
  return state == HandleState::lost || state == HandleState::released;
}

/// Thread safety: all members from any thread. Those with a Lock parameter need lock().
class Notifier {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using Done = detail::Grant::Done;
  using Callback = std::variant<StateCallback, ContendedCallback, RevokeCallback>;
  /// Functions of the owner. notify() calls them without the lock.
  struct Hooks {
    std::function<void()> on_loss{};  ///< Required if report_loss() is called.
    /// Default: notify() throws the first exception of user code at its end.
    std::function<void(const std::exception_ptr&)> on_thrown{};
  };

  /// `generation`: fork_generation() of the process that has the grant.
  explicit Notifier(unsigned generation = fork_generation()) : generation_(generation) {}

  unsigned generation() const noexcept { return generation_; }
  /// Returns true in a fork()ed child of the process that has the grant.
  bool is_foreign() const noexcept;
  HandleState state() const noexcept { return state_.load(std::memory_order_acquire); }
  LossReason reason() const noexcept { return reason_.load(std::memory_order_acquire); }
  bool has_ended() const noexcept { return is_final(state()); }
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  void request_stop() noexcept { stop_.request_stop(); }
  Lock lock() { return Lock(mutex_); }

  /// Returns false if the state is final, or is `state` already.
  bool become(const Lock&, HandleState state, LossReason why) noexcept;
  /// From now on notify() calls Hooks::on_loss, once after a loss. Also for a loss before this
  /// call.
  void report_loss(const Lock&) noexcept;
  bool reports_loss(const Lock&) const noexcept { return reports_loss_; }
  /// Adds a callback. A state callback gets later changes. With `with_present`, it first gets the
  /// present state if that is not held.
  void add(Callback callback, bool with_present = true);
  bool has_listeners(const Lock&) const noexcept { return !listeners_.empty(); }
  /// Another client wants the lock.
  void note_contended() noexcept;
  /// Another client asks the holder to release. The last request counts.
  void note_request(const Revocation& how);
  /// Releases the handle: no callback begins after this. notify() still requests a stop that is
  /// due.
  void leave(const Lock&) noexcept { is_left_ = true; }
  bool is_left(const Lock&) const noexcept { return is_left_; }

  /// Returns true if a notification is due and no notify() is: the caller must call notify() then.
  bool begin(const Lock&) noexcept;
  /// Sends all notifications that are due, the stop first, and unlocks `lock`. Call it once for
  /// each begin() that returned true.
  void notify(Lock& lock, const Hooks& hooks);
  void notify(Lock& lock) { notify(lock, Hooks()); }
  /// Returns true if the state is final and no notify() is due.
  bool is_settled(const Lock&) const noexcept { return has_ended() && !is_begun_; }

  /// Returns true inside user code that notify() calls.
  bool is_notifying_here();
  /// Blocks until no user code runs. Does not block inside user code that notify() calls.
  void wait_turn(Lock& lock);
  /// After leave(): as wait_turn(), and destroys the callbacks. Does nothing in a fork()ed child.
  void wait_quiet() noexcept;
  /// As Grant::release_quietly() of `grant`, which has this notifier.
  void release_quietly(const std::shared_ptr<detail::Grant>& grant, Done done) noexcept;

 private:
  struct Listener {
    Callback call;
    unsigned known = 0;  ///< number of changes, of requests to release, or 1 for contention
    bool knows_loss = false;
  };
  using Listeners = std::list<Listener>;

  bool is_due(const Listener& listener) const noexcept;
  Listener* next() noexcept;
  bool has_useless_listeners() const noexcept;
  void call(Lock& lock, const Hooks& hooks, Listener& listener);
  template <class UserCode>
  void outside(Lock& lock, const Hooks& hooks, const UserCode& code);
  bool is_here() const noexcept { return notifying_ == std::this_thread::get_id(); }
  void when_quiet(detail::UniqueFunction<void()> job);

  const unsigned generation_;
  std::atomic<HandleState> state_{HandleState::held};
  std::atomic<LossReason> reason_{LossReason::none};
  std::stop_source stop_;

  std::mutex mutex_;
  Listeners listeners_;
  std::shared_ptr<const Revocation> request_;
  unsigned requests_ = 0;
  unsigned changes_ = 0;  ///< between held and suspect; suspect if odd
  bool is_contended_ = false;
  bool is_left_ = false;
  bool stop_is_due_ = false;
  bool reports_loss_ = false;
  bool loss_is_due_ = false;  ///< for Hooks::on_loss
  bool is_begun_ = false;
  std::thread::id notifying_{};  ///< the thread that runs user code
  std::exception_ptr thrown_;
  std::condition_variable quiet_;
  detail::UniqueFunction<void()> when_quiet_;
};

}  // namespace dlock::core

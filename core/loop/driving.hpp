// SPDX-License-Identifier: Apache-2.0
//
// Driving: decides which thread runs the loop. Usually that is the loop's own thread. While
// blocking calls are made one after the other it is the thread of the call that waits (leader and
// followers, as in Schmidt et al., Pattern-Oriented Software Architecture 2). A caller that is
// alone sends, waits and receives on its own thread, and no thread has to be woken for it. On a
// virtual machine a waking takes longer than a lock and unlock on Redis. The loop's thread naps
// meanwhile, a millisecond at a time (five while calls leave nothing to it). It leads again when a
// nap has passed without a caller, and at the next timer. It leads at once when a second caller
// waits, or work is posted from elsewhere while no thread leads.
//
// No user code runs on the loop, so none runs on a caller's thread from here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "core/loop/real_env.hpp"

namespace dlock::core {

class Driving;

/// The result that a blocking call waits for. The loop sets it.
class Awaited {
 public:
  virtual ~Awaited() = default;
  virtual bool is_over() const noexcept = 0;
  /// Sleeps until it is over. Unless it is over already, `loop` (if not null) is notified of the
  /// sleep (follow()) and of the answer (on_answer()).
  virtual void sleep(std::shared_ptr<Driving> loop) = 0;

 protected:
  Awaited() = default;
  Awaited(const Awaited&) = default;
  Awaited& operator=(const Awaited&) = default;
};

/// How the system schedules a thread: sched(7).
struct Scheduling {
  int policy = 0;
  int priority = 0;  ///< for the real-time policies
  int nice = 0;
};

/// Thread safety: all members from any thread.
class Driving final : public RealEnv::Runner, public std::enable_shared_from_this<Driving> {
 public:
  /// `env` is touched by nothing here when stop() has returned.
  explicit Driving(RealEnv& env, bool callers_lead = true)
      : env_(env), callers_lead_(callers_lead) {}

  using OnException = std::function<void(const char* what)>;
  /// The loop's own thread runs this, once; returns after stop(). A std::bad_alloc that leaves a
  /// handler ends the process, on any thread. `on_exception` receives each other exception, which
  /// is a bug. The loop continues, because all locks depend on it.
  void run_here(OnException on_exception);
  /// When it returns, no thread runs the loop.
  void stop() noexcept;

  /// The calling thread has posted work for the loop, under an Intent or not.
  void on_work() noexcept;
  bool takes_post() noexcept override;
  void on_post() noexcept override;
  /// Called by an Awaited: another thread has to run the loop until on_answer(), which the loop
  /// calls.
  void follow() noexcept;
  /// So few threads sleep that a thread which polls keeps no other from a processor.
  bool is_quiet() const noexcept { return waiting_.load(std::memory_order_relaxed) <= kFew; }
  void on_answer() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }

  /// While it lives, posts of the calling thread wake no thread: wait() or push() runs them.
  class Intent {
   public:
    Intent() noexcept;
    ~Intent();
    Intent(const Intent&) = delete;
    Intent& operator=(const Intent&) = delete;

    /// Runs the loop that was posted to until `awaited` is over, or sleeps until then if another
    /// thread has to run it.
    void wait(Awaited& awaited);
    /// Runs the posted work, on the calling thread if no thread leads: for an unlock without a
    /// wait.
    void push() noexcept;

   private:
    friend class Driving;
    bool takes(Driving& to) noexcept;
    std::shared_ptr<Driving> close() noexcept;
    static thread_local Intent* open;
    Intent* const outer_;
    std::shared_ptr<Driving> posted_;
  };

 private:
  static constexpr int kFew = 4;
  enum class Leader : std::uint8_t { nobody, own, caller };
  using Lock = std::unique_lock<std::mutex>;

  void wait(Awaited& awaited);
  void push() noexcept;
  void see_to_posted() noexcept;
  bool begin() noexcept;
  void end() noexcept;
  bool nap(Lock& lock);
  void lead();
  void run_posted() noexcept;
  template <class Handlers>
  void run(Handlers handlers) noexcept;
  void crowd() noexcept;
  bool is_crowded() const noexcept;
  bool leaves_something() const noexcept;

  RealEnv& env_;
  const bool callers_lead_;
  OnException on_exception_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Leader leader_ = Leader::nobody;
  bool is_running_ = false;  ///< the loop's own thread is there
  bool is_stopped_ = false;
  bool is_wanted_ = false;  ///< the loop's own thread
  bool is_asleep_ = false;  ///< it is, without a limit
  bool was_led_ = false;    ///< by a caller, since the last nap began
  std::uint64_t leads_ = 0;
  bool has_rung_ = false;   ///< a timer, below a caller since the present nap began
  TimePoint wakes_at_{};    ///< the loop's own thread, from its nap
  TimePoint due_ = kNever;  ///< the next timer, while no thread leads
  Scheduling own_;          ///< the scheduling of the loop's own thread

  std::atomic<int> waiting_ = 0;             ///< number of sleeping threads
  std::atomic<std::uint64_t> visits_ = 0;    ///< number of callers that could not lead
  std::atomic<bool> yield_ = false;          ///< the caller that leads has to let go
  std::atomic<bool> has_unawaited_ = false;  ///< there has been work that no call waits for
  /// Two callers were here at once, or one that does not wait.
  std::atomic<std::int64_t> crowded_at_{0};
};

}  // namespace dlock::core

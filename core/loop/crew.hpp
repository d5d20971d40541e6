// SPDX-License-Identifier: Apache-2.0
//
// `Crew`: a thread pool for tasks that may block: user code, the log, a slow system call. It has as
// many threads as needed. A task that waits while all threads are stuck gets another thread, up to
// a limit; threads without work end. If a thread cannot be made, the task does not fail: it waits
// for the present threads, and making one is tried again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "dlock/spi/env.hpp"

namespace dlock::core {

/// A task to run, and its place in the queue.
class Errand {
 public:
  Errand() = default;
  virtual ~Errand() = default;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  /// Runs on a thread of the pool. Throws std::bad_alloc only, which ends the process.
  virtual void run() = 0;

 private:
  friend class Crew;
  std::shared_ptr<Errand> next_;  ///< while it is queued
  std::chrono::steady_clock::time_point since_{};
};

/// Returns an object whose run() calls `work`.
template <class Work>
std::shared_ptr<Errand> make_errand(Work work) {
  class WorkErrand final : public Errand {
   public:
    explicit WorkErrand(Work work) : work_(std::move(work)) {}
    void run() override { work_(); }

   private:
    Work work_;
  };
  return std::make_shared<WorkErrand>(std::move(work));
}

/// Thread safety: all members from any thread. A task is in one queue at most, once.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  struct Limits {
    int least = 0;  ///< number of threads that stay without work
    int most = 1;
    /// If the threads at work begin no task for this time while one waits, a resting thread begins
    /// it, or another thread is made.
    std::chrono::milliseconds patience{0};
    std::chrono::milliseconds rest{1000};  ///< a thread without work ends after that
  };
  /// `short_of_threads`: a task waits and no thread can be made; call hire() in a while. Called on
  /// any thread, until finish().
  explicit Crew(Limits limits, std::function<void()> short_of_threads = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Makes the threads that stay. Throws std::system_error if one cannot be made; nothing has
  /// changed then.
  void start();
  /// Queues a task. Tasks begin in the order in which they were posted.
  void post(std::shared_ptr<Errand> errand) noexcept;
  /// Makes a thread if one is missing.
  void hire() noexcept;
  /// Removes the next task, for the caller to run; null if none waits.
  std::shared_ptr<Errand> take() noexcept;

  /// Waits for the posted tasks until that time. Then it drops tasks that have not begun, and
  /// leaves stuck threads alone. From one of its own threads: does not wait, and drops nothing. A
  /// task that is posted later runs on a thread that is made for it.
  void finish(std::chrono::steady_clock::time_point until) noexcept;

 private:
  struct Worker {
    std::thread thread;
    bool is_working = false;
    bool has_ended = false;  ///< set for finish() only
  };
  using Workers = std::list<Worker>;
  using Lock = std::unique_lock<std::mutex>;
  using Moment = std::chrono::steady_clock::time_point;

  bool is_short() const noexcept;
  void hire(Lock& lock);
  void try_to_hire(Lock& lock) noexcept;
  void work(Workers::iterator self, unsigned generation);
  bool may_begin(Moment now) const noexcept;
  Moment stuck_at() const noexcept;
  bool rest(Lock& lock) noexcept;
  void run_next(Lock& lock, Workers::iterator self, unsigned generation);
  std::shared_ptr<Errand> pop() noexcept;
  Workers dismiss(Lock& lock) noexcept;

  const Limits limits_;
  std::shared_ptr<const std::function<void()>> short_of_threads_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable changed_;  ///< for finish(): a task is done, or a thread has ended
  std::shared_ptr<Errand> head_;
  Errand* tail_ = nullptr;
  unsigned generation_ = 0;  ///< the threads' generation; finish() begins another
  int threads_ = 0;          ///< in this generation
  int working_ = 0;          ///< those that run a task
  int starting_ = 0;
  int resting_ = 0;
  int watching_ = 0;       ///< resting threads that check again when the others are stuck
  Moment last_begun_{};    ///< when the last task began
  bool was_told_ = false;  ///< that threads are short, since the last hire()
  bool is_finished_ = false;
  Workers workers_;
  Workers ended_;  ///< to be joined
};

}  // namespace dlock::core

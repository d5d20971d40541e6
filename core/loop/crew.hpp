// SPDX-License-Identifier: Apache-2.0
//
// Crew: a few threads that run errands which may block: user code, the log, a slow system call. As
// many threads as there is need for: an errand that waits while all of them are stuck gets another,
// up to a limit, and threads without work end. A thread that cannot be made is no failure of the
// errand: it waits for the threads there are, and making one is tried again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "dlock/spi/env.hpp"

namespace dlock::core {

/// Something to run, and its place in the queue.
class Errand {
 public:
  Errand() = default;
  virtual ~Errand() = default;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  /// On a thread of the crew. Throws std::bad_alloc only, which ends the process.
  virtual void run() = 0;

 private:
  friend class Crew;
  std::shared_ptr<Errand> next_;  ///< while it is queued
  std::chrono::steady_clock::time_point since_{};
};

/// Thread safety: all members from any thread. An errand is in one queue at most, once.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  struct Limits {
    int least = 0;  ///< so many threads stay when there is nothing to do
    int most = 1;
    /// When the threads at work have begun nothing for so long while an errand waits, another one
    /// is taken off its rest, or made.
    std::chrono::milliseconds patience{0};
    std::chrono::milliseconds rest{1000};  ///< a thread without work ends after that
  };
  /// `short_of_threads`: an errand waits and no thread can be made; hire() should be called in a
  /// while. Called on any thread, until finish().
  explicit Crew(Limits limits, std::function<void()> short_of_threads = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Makes the threads that stay. Throws std::system_error if there is none to be had, and is as
  /// before then.
  void start();
  /// Errands begin in the order in which they were posted.
  void post(std::shared_ptr<Errand> errand) noexcept;
  /// Makes a thread if one is missing.
  void hire() noexcept;
  /// Takes the next errand out, for the caller to run; null if none waits.
  std::shared_ptr<Errand> take() noexcept;

  /// Waits for what was posted, until that moment; what has not begun by then is dropped, and a
  /// thread that is stuck is left to itself. From one of its own threads: does not wait, and drops
  /// nothing. What is posted later runs on a thread that is made for it.
  void finish(std::chrono::steady_clock::time_point until) noexcept;

 private:
  struct Worker {
    std::thread thread;
    bool is_working = false;
    bool has_ended = false;  ///< said to finish() only
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
  std::condition_variable changed_;  ///< for finish(): somebody is done, or has ended
  std::shared_ptr<Errand> head_;
  Errand* tail_ = nullptr;
  unsigned generation_ = 0;  ///< of the threads; finish() begins another
  int threads_ = 0;          ///< of this generation
  int working_ = 0;          ///< likewise
  int starting_ = 0;
  int resting_ = 0;
  int watching_ = 0;       ///< of those, who look again when the others are stuck
  Moment last_begun_{};    ///< an errand
  bool was_told_ = false;  ///< that threads are short, since the last hire()
  bool is_finished_ = false;
  Workers workers_;
  Workers ended_;  ///< to be joined
};

}  // namespace dlock::core

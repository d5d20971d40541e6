// SPDX-License-Identifier: Apache-2.0
//
// Writer: writes to a descriptor on its own thread, so that a full pipe blocks that thread alone.
// Polling before a blocking write() does not suffice: another process can fill the pipe in between.
//
// Thread safety: all members from any thread.
// Lifetime: as the process; exit() does not wait for a write() that is blocked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace dlock::program {

class Writer {
 public:
  /// Drops a text when more than `most` bytes are queued.
  Writer(int descriptor, std::size_t most) : descriptor_(descriptor), most_(most) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Queues the text. Waits until it is written, 100 ms at most while the descriptor takes nothing.
  void write(std::string_view text);
  /// Blocks until all that is queued is written, or a write has failed.
  void finish() noexcept;
  /// Returns the errno of the first write that failed, ETIMEDOUT while a text is queued, else 0.
  int error() const noexcept;

 private:
  /// Starts the thread. Returns false if the system has no thread to give.
  bool has_thread();
  void work() noexcept;
  bool is_idle() const noexcept { return queued_.empty() && !is_writing_; }
  void wait_for_reader(std::unique_lock<std::mutex>& lock);

  const int descriptor_;
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_written_;
  std::string queued_;
  bool is_writing_ = false;
  bool is_stuck_ = false;  ///< nothing was taken in time: later texts are not waited for
  bool has_thread_ = false;
  int error_ = 0;
};

}  // namespace dlock::program

// SPDX-License-Identifier: Apache-2.0
#include "program/writer.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "dlock/spi/thread.hpp"

namespace dlock::program {

namespace {

constexpr std::chrono::milliseconds kPatience{100};
/// Bounds the wait for a thread that the system does not schedule.
constexpr int kMostWaits = 10;

bool is_writable(int descriptor, int timeout_ms) noexcept {
  pollfd polled{descriptor, POLLOUT, 0};
  return ::poll(&polled, 1, timeout_ms) > 0;
}

/// Returns 0, or the errno.
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // another process has made it non-blocking
      is_writable(descriptor, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void Writer::write(std::string_view text) {
  std::unique_lock lock(mutex_);
  if (queued_.size() + text.size() > most_) return;
  queued_ += text;
  if (!has_thread()) {
    if (!is_writable(descriptor_, static_cast<int>(kPatience.count()))) return;
    const int error = write_all(descriptor_, queued_);
    if (error_ == 0) error_ = error;
    queued_.clear();
    return;
  }
  has_work_.notify_one();
  wait_for_reader(lock);
}

// A descriptor that is writable has a reader: only the thread is late then.
void Writer::wait_for_reader(std::unique_lock<std::mutex>& lock) {
  for (int i = 0; i < kMostWaits && !is_stuck_; ++i) {
    if (has_written_.wait_for(lock, kPatience, [this] { return is_idle(); })) return;
    is_stuck_ = i + 1 == kMostWaits || !is_writable(descriptor_, 0);
  }
}

void Writer::finish() noexcept {
  std::unique_lock lock(mutex_);
  if (!has_thread_) return;
  has_written_.wait(lock, [this] { return is_idle() || error_ != 0; });
}

int Writer::error() const noexcept {
  const std::scoped_lock lock(mutex_);
  if (error_ != 0) return error_;
  return is_idle() ? 0 : ETIMEDOUT;
}

bool Writer::has_thread() {
  if (has_thread_) return true;
  try {
    start_thread([this] { work(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): the caller writes itself
  }
  return has_thread_;
}

void Writer::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return !queued_.empty(); });
    const auto text = std::exchange(queued_, {});
    is_writing_ = true;
    lock.unlock();
    const int error = write_all(descriptor_, text);
    lock.lock();
    is_writing_ = false;
    is_stuck_ = false;
    if (error_ == 0) error_ = error;
    has_written_.notify_all();
  }
}

}  // namespace dlock::program

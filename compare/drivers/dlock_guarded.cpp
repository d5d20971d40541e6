// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "compare/drivers/guarded.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/mutex.hpp"

namespace dlock::compare {

namespace {

class DlockGuarded : public Guarded {
 public:
  DlockGuarded(const Job& job, std::function<void()> on_loss)
      : manager_(LockManager::open(job.text("url"), quiet())),
        lock_(manager_.lock(job.text("lock"))),
        on_loss_(std::move(on_loss)) {
    manager_.connect();
  }

  void acquire() override {
    held_ = lock_->acquire({.wait = kWaitForever});
    held_.on_state([this](HandleState state, LossReason) {
      if (state == HandleState::lost) on_loss_();
    });
  }
  Until until() override {
    const auto before = now_ns();
    const auto left = held_.remaining();
    // Of one that is lost nothing is left, from some moment on that is over; not from now.
    if (left && left->count() == 0) return 0;
    return left ? Until(before + left->count()) : Until();
  }
  std::optional<std::uint64_t> token() override { return held_.token(); }
  std::string lost() override {
    return held_.state() == HandleState::lost ? to_string(held_.loss_reason()) : "";
  }
  std::string release() override {
    const auto error = held_.release();
    return error ? error.message() : "";
  }
  // A handle may be released by any thread: it is the owner itself. MutexGuarded is what has one.
  std::string release_by_another_thread() override { return release(); }

 private:
  static OpenOptions quiet() {
    auto options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }

  LockManager manager_;
  std::shared_ptr<DistributedLock> lock_;
  std::function<void()> on_loss_;
  LockHandle held_;
};

/// Held through a Mutex, whose owner is a thread.
class MutexGuarded : public Guarded {
 public:
  explicit MutexGuarded(const Job& job)
      : manager_(LockManager::open(job.text("url"))), mutex_(manager_.lock(job.text("lock"))) {}

  void acquire() override { mutex_.lock(); }
  Until until() override { return std::nullopt; }
  std::optional<std::uint64_t> token() override { return std::nullopt; }
  std::string lost() override { return {}; }
  std::string release() override {
    try {
      mutex_.unlock();
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }
  std::string release_by_another_thread() override { return release(); }

 private:
  LockManager manager_;
  Mutex mutex_;
};

}  // namespace

std::unique_ptr<Guarded> make_dlock_guarded(const Job& job, std::function<void()> on_loss) {
  if (job.text("hold_by") == "mutex") return std::make_unique<MutexGuarded>(job);
  return std::make_unique<DlockGuarded>(job, std::move(on_loss));
}

}  // namespace dlock::compare

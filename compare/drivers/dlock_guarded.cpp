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
  // The handle can be released by any thread: it is the owner, and moving it is explicit. What
  // belongs to a thread is the Mutex.
  std::string release_by_another_thread() override {
    Mutex mutex(lock_);
    try {
      mutex.unlock();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

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

}  // namespace

std::unique_ptr<Guarded> make_dlock_guarded(const Job& job, std::function<void()> on_loss) {
  return std::make_unique<DlockGuarded>(job, std::move(on_loss));
}

}  // namespace dlock::compare

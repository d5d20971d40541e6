// SPDX-License-Identifier: Apache-2.0
//
// StepLock: a lock whose acquires end when the test says so, or are cancelled.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dlock/distributed_lock.hpp"
#include "dlock/testing/fake_handle.hpp"

namespace dlock::tests {

/// One acquire at a time.
class StepLock final : public DistributedLock {
 public:
  explicit StepLock(std::string name, std::string store = "steps")
      : name_(std::move(name)), store_(std::move(store)) {}

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return store_; }
  std::optional<std::chrono::milliseconds> default_wait() const noexcept override {
    return usual_wait;
  }

  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    if (on_start) on_start();
    const std::lock_guard lock(mutex_);
    options_ = options;
    handler_ = std::move(handler);
    ++asked_;
    return [this] {
      ++cancels;
      if (!ignores_cancel) refuse(errc::cancelled);
    };
  }

  /// The commands of the handle that is granted.
  testing::FakeHandle grant() {
    testing::FakeHandle granted({.name = name_, .token = 7, .store = store_});
    end({}, granted.handle());
    return granted;
  }
  /// Nothing happens if no acquire is under way.
  void refuse(errc error, std::string text = {}) {
    {
      const std::lock_guard lock(mutex_);
      if (handler_ && options_.diagnostics != nullptr) {
        *options_.diagnostics = {name_, store_, std::move(text)};
      }
    }
    end(make_error_code(error), {});
  }

  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  bool is_pending() const {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(handler_);
  }
  std::optional<std::chrono::milliseconds> wait() const {
    const std::lock_guard lock(mutex_);
    return options_.wait;
  }

  std::optional<std::chrono::milliseconds> usual_wait;
  std::function<void()> on_start;
  bool ignores_cancel = false;
  int cancels = 0;

 private:
  void end(error_code ec, LockHandle handle) {
    detail::AcquireHandler handler;
    {
      const std::lock_guard lock(mutex_);
      handler = std::exchange(handler_, {});
    }
    if (handler) handler(ec, std::move(handle));
  }

  const std::string name_;
  const std::string store_;
  mutable std::mutex mutex_;
  AcquireOptions options_;
  detail::AcquireHandler handler_;
  int asked_ = 0;
};

}  // namespace dlock::tests

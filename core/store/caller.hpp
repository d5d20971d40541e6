// SPDX-License-Identifier: Apache-2.0
//
// Caller: completes an acquire exactly once, at its deadline at the latest.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/spi/error.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

/// Loop only.
class Caller {
 public:
  /// `diagnostics`: the caller's, or null; written before the handler is called.
  Caller(Env& env, detail::AcquireHandler handler, Diagnostics* diagnostics)
      : env_(env), handler_(std::move(handler)), diagnostics_(diagnostics) {}
  ~Caller() { stop_clock(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Calls `late` at that time, unless the clock is stopped. kNever: not at all.
  template <class Late>
  void call_at(TimePoint deadline, Late late) {
    if (deadline == kNever) return;
    timer_ = env_.call_at(deadline, [this, late = std::move(late)] {
      timer_ = 0;
      late();
    });
  }
  void stop_clock() noexcept { env_.cancel(std::exchange(timer_, 0)); }

  bool is_told() const noexcept { return !handler_; }
  void give(LockHandle handle) {
    if (diagnostics_ != nullptr && handler_) *diagnostics_ = {};
    tell({}, std::move(handle));
  }
  /// `text`: the text of the diagnostics.
  void refuse(errc error, const Failure& cause, const std::string& lock, const std::string& store,
              std::string text) {
    if (diagnostics_ != nullptr && handler_) *diagnostics_ = {lock, store, std::move(text)};
    tell(told_code(error, cause), LockHandle());
  }
  /// The acquire could not continue.
  void fail(const Failure& why) {
    if (diagnostics_ != nullptr && handler_) diagnostics_->server_text = why.text;
    tell(why.error, LockHandle());
  }

 private:
  void tell(error_code ec, LockHandle handle) {
    if (auto handler = std::exchange(handler_, {})) handler(ec, std::move(handle));
  }

  Env& env_;
  detail::AcquireHandler handler_;
  Diagnostics* const diagnostics_;
  TimerId timer_ = 0;
};

}  // namespace dlock::core

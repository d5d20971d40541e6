// SPDX-License-Identifier: Apache-2.0
#include "dlock/testing/fake_lock.hpp"

#include <stdexcept>
#include <utility>

namespace dlock::testing {

FakeLock::FakeLock(std::string name, std::string store)
    : name_(std::move(name)), store_(std::move(store)) {}

detail::Canceller FakeLock::start_acquire(AcquireOptions options, detail::AcquireHandler handler) {
  auto* const diagnostics = std::exchange(options.diagnostics, nullptr);
  Refusal refusal;
  LockHandle granted;
  {
    const std::lock_guard lock(mutex_);
    acquires_.push_back(options);
    if (!refusals_.empty()) {
      refusal = std::move(refusals_.front());
      refusals_.pop_front();
    } else {
      auto token = std::exchange(next_token_, std::nullopt).value_or(last_token_ + 1);
      if (token) last_token_ = *token;
      granted = grants_.emplace_back(FakeIdentity{name_, token, store_, options.mode}).handle();
    }
  }
  if (diagnostics != nullptr) {
    *diagnostics = {};
    if (refusal.error) *diagnostics = {name_, store_, std::move(refusal.text)};
  }
  handler(refusal.error, std::move(granted));
  return [] {};
}

void FakeLock::refuse(errc error, std::string text) {
  const std::lock_guard lock(mutex_);
  refusals_.push_back({make_error_code(error), std::move(text)});
}

void FakeLock::next_token(std::optional<std::uint64_t> token) {
  const std::lock_guard lock(mutex_);
  next_token_ = token;
}

std::vector<FakeHandle> FakeLock::grants() const {
  const std::lock_guard lock(mutex_);
  return grants_;
}

FakeHandle FakeLock::last_grant() const {
  const std::lock_guard lock(mutex_);
  if (grants_.empty()) throw std::logic_error("FakeLock '" + name_ + "' has granted nothing yet");
  return grants_.back();
}

std::vector<AcquireOptions> FakeLock::acquires() const {
  const std::lock_guard lock(mutex_);
  return acquires_;
}

}  // namespace dlock::testing

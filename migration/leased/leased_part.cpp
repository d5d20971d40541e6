// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_part.hpp"

#include <mutex>
#include <utility>

#include "dlock/detail/grant.hpp"

namespace dlock::core::migration {

/// The dependency of the part's hold.
class LeasedPart::Watch final : public HoldDependency {
 public:
  explicit Watch(bool in_source) : in_source_(in_source) {}

  void report_to(std::weak_ptr<PartUser> user) {
    const std::lock_guard guard(mutex_);
    user_ = std::move(user);
  }
  TimePoint until() const noexcept override { return kNever; }
  void on_change(HandleState state, LossReason why) noexcept override {
    if (const auto user = this->user()) user->on_part_change(in_source_, state, why);
  }
  void on_lost(LossReason) override {
    if (const auto user = this->user()) user->on_part_lost();
  }
  std::shared_ptr<Hold> holder() noexcept override {
    const auto user = this->user();
    return user ? user->user() : nullptr;
  }
  bool has_user() noexcept override { return holder() != nullptr; }

 private:
  std::shared_ptr<PartUser> user() noexcept {
    const std::lock_guard guard(mutex_);
    return user_.lock();
  }

  const bool in_source_;
  std::mutex mutex_;
  std::weak_ptr<PartUser> user_;
};

LeasedPart::LeasedPart(LockHandle granted, bool in_source)
    : hold_(HandleAccess::hold(granted)), watch_(std::make_shared<Watch>(in_source)) {
  hold_->depend_on(watch_);
  detail::GrantAccess::take(granted);
}

void LeasedPart::report_to(std::weak_ptr<PartUser> user) { watch_->report_to(std::move(user)); }

void LeasedPart::release(Releaser::Done done) {
  if (watch_) {
    watch_->report_to({});
    watch_.reset();
    hold_->release(std::move(done));
  } else if (done) {
    done({});
  }
}

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
#include "core/manager/lock_context.hpp"

#include <memory>
#include <new>
#include <string>

#include "core/loop/completions.hpp"
#include "core/manager/multi_grant.hpp"
#include "core/manager/reentry.hpp"
#include "core/store/hold.hpp"
#include "core/store/host.hpp"

namespace dlock::inline v0 {
namespace {

/// The context of one lock without a manager.
class OwnContext final : public detail::LockContext {
 public:
  core::Reentry& reentry() override { return reentry_; }
  boost::asio::any_io_executor callback_executor() override { return completions_->executor(); }

 private:
  core::Reentry reentry_;
  const std::shared_ptr<core::Completions> completions_ = core::Completions::alone();
};

/// Never destroyed: locks of static storage may ask after that.
const std::string& unknown_store() {
  alignas(std::string) static unsigned char place[sizeof(std::string)];
  static const auto* const name = ::new (place) std::string();
  return *name;
}

}  // namespace

DistributedLock::~DistributedLock() { delete own_context_.load(std::memory_order_acquire); }

const std::string& DistributedLock::store() const noexcept { return unknown_store(); }

std::optional<std::chrono::milliseconds> DistributedLock::default_wait() const noexcept {
  return std::nullopt;
}

detail::LockContext& DistributedLock::context() const {
  if (auto* const known = own_context_.load(std::memory_order_acquire)) return *known;
  auto made = std::make_unique<OwnContext>();
  detail::LockContext* other = nullptr;
  if (!own_context_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel)) {
    return *other;
  }
  return *made.release();
}

namespace detail {

boost::asio::any_io_executor callback_executor(const DistributedLock& lock) {
  return lock.context().callback_executor();
}

boost::asio::any_io_executor callback_executor(const LockHandle& handle) {
  if (const auto hold = core::HandleAccess::hold(handle)) return hold->host().callback_executor();
  // Several locks use the first one's.
  auto grant = GrantAccess::grant(handle);
  while (const auto* const several = dynamic_cast<const core::MultiGrant*>(grant.get())) {
    grant = several->parts().front();
  }
  const auto hold = core::HandleAccess::hold(grant);
  if (!hold) return core::Completions::alone()->executor();
  return hold->host().callback_executor();
}

}  // namespace detail
}  // namespace dlock::inline v0

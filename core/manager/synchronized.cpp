// SPDX-License-Identifier: Apache-2.0
#include "dlock/synchronized.hpp"

namespace dlock::inline v0::detail {

SynchronizedSection::SynchronizedSection(std::shared_ptr<DistributedLock> lock)
    : mutex_(std::move(lock)) {
  mutex_.lock();
}

// The work has thrown: what it says counts for more than what became of the lock.
SynchronizedSection::~SynchronizedSection() {
  error_code ignored;
  if (!left_) mutex_.unlock(ignored);
}

bool SynchronizedSection::was_told() const {
  const auto* handle = mutex_.held();
  if (handle == nullptr) return false;
  switch (takes_) {
    case Takes::nothing:
      return false;
    case Takes::stop_token:
      return handle->stop_token().stop_requested();
    case Takes::handle:
      return handle->state() == HandleState::lost;
  }
  return false;
}

void SynchronizedSection::leave() {
  const bool told = was_told();
  const auto* handle = mutex_.held();
  Diagnostics diagnostics;
  if (handle != nullptr) {
    diagnostics = {handle->name(), handle->store(),
                   "it was lost while the work ran, and the work was not told"};
  }
  left_ = true;
  error_code ec;
  mutex_.unlock(ec);
  if (ec == errc::lock_lost && !told) throw LockError(ec, std::move(diagnostics));
}

}  // namespace dlock::inline v0::detail

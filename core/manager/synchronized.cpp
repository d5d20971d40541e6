// SPDX-License-Identifier: Apache-2.0
#include "dlock/synchronized.hpp"

#include "core/manager/entering.hpp"
#include "core/manager/sections.hpp"

namespace dlock::inline v0::detail {

SynchronizedSection::SynchronizedSection(std::shared_ptr<DistributedLock> lock,
                                         const CallSite& site)
    : lock_(std::move(lock)) {
  enter(std::nullopt, site);
}

SynchronizedSection::SynchronizedSection(LockManager& locks, std::string name,
                                         const CallSite& site) {
  enter(locks, core::section_named(locks, std::move(name)), site);
}

SynchronizedSection::SynchronizedSection(LockManager& locks, Section section,
                                         const CallSite& site) {
  if (section.lock.empty() && section.type != LockType::multi) {
    if (site.function == nullptr) {
      throw LockError(make_error_code(errc::invalid_name),
                      {{},
                       {},
                       "synchronized() of this compiler does not know the function that "
                       "calls it; say Section::lock"});
    }
    section.lock = lock_name_of(site.function);
  }
  enter(locks, std::move(section), site);
}

void SynchronizedSection::enter(LockManager& locks, Section section, const CallSite& site) {
  lock_ = core::lock_of(locks, section);
  if (section.type == LockType::read) mode_ = Mode::shared;
  enter(section.wait, site);
}

void SynchronizedSection::enter(std::optional<std::chrono::milliseconds> wait,
                                const CallSite& site) {
  core::enter(*lock_, mode_, wait, false, {"synchronized()", site.file, site.line});
}

// The work has thrown: what it says counts for more than what became of the lock.
SynchronizedSection::~SynchronizedSection() {
  if (!left_) core::leave(*lock_, mode_);
}

LockHandle* SynchronizedSection::held() const { return core::held_here(*lock_); }

bool SynchronizedSection::was_told() const {
  const auto* handle = held();
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
  const auto* handle = held();
  Diagnostics diagnostics;
  if (handle != nullptr) {
    diagnostics = {handle->name(), handle->store(),
                   "it was lost while the work ran, and the work was not notified"};
  }
  left_ = true;
  const auto ec = core::leave(*lock_, mode_);
  if (ec == errc::lock_lost && !told) throw LockError(ec, std::move(diagnostics));
}

}  // namespace dlock::inline v0::detail

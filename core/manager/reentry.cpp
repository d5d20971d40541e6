// SPDX-License-Identifier: Apache-2.0
#include "core/manager/reentry.hpp"

#include <atomic>

#include "dlock/spi/fork.hpp"

namespace dlock::core {

Reentry::Reentry() : generation_(fork_generation()) {}

bool Reentry::is_foreign() const noexcept { return fork_generation() != generation_; }

Reentry::Entry* Reentry::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({name, this_thread()});
  return found == entries_.end() ? nullptr : &found->second;
}

void Reentry::enter(const std::string& name, LockHandle handle, Mode mode) {
  Entry entry{std::move(handle)};
  entry.depth_of(mode) = 1;
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign({name, this_thread()}, std::move(entry));
}

LockHandle Reentry::leave(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto node = entries_.extract({name, this_thread()});
  return node ? std::move(node.mapped().handle) : LockHandle();
}

std::uint64_t Reentry::this_thread() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t mine = ++last;
  return mine;
}

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <unordered_set>

namespace dlock::inline v0 {
namespace {

// The registry's mutex is held across fork(), so that the child finds the set whole. The child
// has one thread and unlocks what its copy of that thread locked.
class ForkRegistry {
 public:
  static ForkRegistry& get() {
    // Never destroyed: managers of static storage, and a fork() at exit, may use it after that.
    alignas(ForkRegistry) static unsigned char place[sizeof(ForkRegistry)];
    static auto* const registry = ::new (place) ForkRegistry();
    return *registry;
  }

  unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

  void add(int descriptor) {
    const std::lock_guard lock(mutex_);
    descriptors_.insert(descriptor);
  }
  void remove(int descriptor) noexcept {
    const std::lock_guard lock(mutex_);
    descriptors_.erase(descriptor);
  }

 private:
  ForkRegistry() {
    ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                     [] { get().in_child(); });
  }

  void in_child() noexcept {
    generation_.fetch_add(1, std::memory_order_relaxed);
    for (const int descriptor : descriptors_) ::close(descriptor);
    descriptors_.clear();
    mutex_.unlock();
  }

  std::atomic<unsigned> generation_{0};
  std::mutex mutex_;
  std::unordered_set<int> descriptors_;
};

}  // namespace

unsigned fork_generation() noexcept { return ForkRegistry::get().generation(); }

void close_in_fork_child(int descriptor) { ForkRegistry::get().add(descriptor); }

void keep_in_fork_child(int descriptor) noexcept { ForkRegistry::get().remove(descriptor); }

}  // namespace dlock::inline v0

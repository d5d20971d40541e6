// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <pthread.h>

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "core/loop/magazine_depot.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define DLOCK_RECYCLES_NOTHING
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DLOCK_RECYCLES_NOTHING
#endif

namespace dlock::inline v0::detail {
namespace {

#ifdef DLOCK_RECYCLES_NOTHING
constexpr bool kRecycles = false;
#else
constexpr bool kRecycles = true;
#endif

/// Between threads: about what some hundreds that lock and unlock at once have under way.
constexpr std::size_t kMostExchanged = std::size_t{4} * 1024 * 1024;

/// Of one size, two at most: so that one block more and less is no way to the depot each time.
struct Magazines {
  FreeBlock* loaded;    ///< of which is taken, and to which is given
  FreeBlock* previous;  ///< full, or none
  std::size_t left;     ///< so many more go into the loaded one; 0 before the first use
};

/// Needs no constructor and no destructor, so that to look costs nothing.
struct FreeBlocks {
  enum class State : std::uint8_t { untouched, open, closed };
  std::array<Magazines, kBlockSizes> of_size;
  State state;
};
constinit thread_local FreeBlocks free_blocks{};
constinit MagazineDepot depot{kMostExchanged};

constexpr std::size_t class_of(std::size_t size) { return (size + kBlockStep - 1) / kBlockStep; }

/// Neither nothing nor too large.
constexpr bool is_kept(std::size_t of_class) { return kRecycles && of_class - 1 < kBlockSizes - 1; }

void give_all(FreeBlock* first) noexcept {
  while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

/// At the thread's end. What ends later still goes where all came from.
void drain(void* of) noexcept {
  auto& blocks = *static_cast<FreeBlocks*>(of);
  blocks.state = FreeBlocks::State::closed;
  for (auto& magazines : blocks.of_size) {
    give_all(magazines.loaded);
    give_all(magazines.previous);
    magazines = {};
  }
}

/// Not a destructor of C++: where there is no memory to note one, glibc ends the program.
struct ThreadEnds {
  pthread_key_t key{};
  const bool made = ::pthread_key_create(&key, &drain) == 0;
};
const ThreadEnds thread_ends;

/// Whether this thread keeps anything.
bool is_open() noexcept {
  if (free_blocks.state == FreeBlocks::State::untouched && thread_ends.made &&
      ::pthread_setspecific(thread_ends.key, &free_blocks) == 0) {
    free_blocks.state = FreeBlocks::State::open;
  }
  return free_blocks.state == FreeBlocks::State::open;
}

/// None is loaded: the previous one, or one that another thread has left.
bool load(Magazines& magazines, std::size_t of_class) noexcept {
  if (magazines.previous != nullptr) {
    magazines.loaded = std::exchange(magazines.previous, nullptr);
  } else {
    magazines.loaded = is_open() ? depot.take(of_class) : nullptr;
  }
  if (magazines.loaded == nullptr) return false;
  magazines.left = 0;
  return true;
}

/// The loaded one is full and becomes the previous one, which goes to the depot.
bool make_room(Magazines& magazines, std::size_t of_class) noexcept {
  if (!is_open()) return false;
  if (magazines.loaded != nullptr) {
    auto* const full = std::exchange(magazines.loaded, nullptr);
    auto* const before = std::exchange(magazines.previous, full);
    if (before != nullptr && !depot.give(before, of_class)) give_all(before);
  }
  magazines.left = kMagazineSizes[of_class];
  return true;
}

}  // namespace

void* take_memory(std::size_t size) {
  const auto of_class = class_of(size);
  if (!is_kept(of_class)) return ::operator new(size);
  auto& magazines = free_blocks.of_size[of_class];
  if (magazines.loaded == nullptr && !load(magazines, of_class)) {
    return ::operator new(of_class* kBlockStep);
  }
  ++magazines.left;
  return std::exchange(magazines.loaded, magazines.loaded->next);
}

void give_memory(void* memory, std::size_t size) noexcept {
  const auto of_class = class_of(size);
  if (!is_kept(of_class)) return ::operator delete(memory);
  auto& magazines = free_blocks.of_size[of_class];
  if (magazines.left == 0 && !make_room(magazines, of_class)) return ::operator delete(memory);
  --magazines.left;
  auto* const block = new (memory) FreeBlock;
  block->next = std::exchange(magazines.loaded, block);
}

}  // namespace dlock::inline v0::detail

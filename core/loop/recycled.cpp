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

/// Of one thread. A lock and unlock takes 10 KiB at most.
constexpr std::size_t kMostKept = std::size_t{64} * 1024;
/// Between threads: what a thousand that lock and unlock at once have under way, and no more.
constexpr std::size_t kMostExchanged = std::size_t{4} * 1024 * 1024;

/// Of one size.
struct Magazines {
  FreeBlock* loaded;    ///< of which is taken, and to which is given
  FreeBlock* previous;  ///< full, or none: so that one block more and less is no way to the depot
  std::uint8_t in_loaded;
};

/// Needs no constructor and no destructor, so that to look costs nothing.
struct FreeBlocks {
  enum class State : std::uint8_t { untouched, open, closed };
  std::array<Magazines, kBlockSizes> of_size;
  std::size_t room;  ///< for more; none before the first use and after the thread's end
  State state;
};
constinit thread_local FreeBlocks free_blocks{};
constinit MagazineDepot depot{kMostExchanged};

constexpr std::size_t class_of(std::size_t size) {
  return size == 0 ? 1 : (size + kBlockStep - 1) / kBlockStep;
}

void give_all(FreeBlock* first) noexcept {
  while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

/// At the thread's end. What ends later still goes where all came from.
void drain(void* of) noexcept {
  auto& blocks = *static_cast<FreeBlocks*>(of);
  blocks.state = FreeBlocks::State::closed;
  blocks.room = 0;
  for (auto& [loaded, previous, in_loaded] : blocks.of_size) {
    give_all(std::exchange(loaded, nullptr));
    give_all(std::exchange(previous, nullptr));
    in_loaded = 0;
  }
}

/// Not a destructor of C++: where there is no memory to note one, glibc ends the program.
struct ThreadEnds {
  pthread_key_t key{};
  const bool made = ::pthread_key_create(&key, &drain) == 0;
};
const ThreadEnds thread_ends;

/// Whether it is so after all.
bool has_room(std::size_t size) noexcept {
  if (free_blocks.state == FreeBlocks::State::untouched) {
    if (!thread_ends.made || ::pthread_setspecific(thread_ends.key, &free_blocks) != 0)
      return false;
    free_blocks.state = FreeBlocks::State::open;
    free_blocks.room = kMostKept;
  }
  return free_blocks.room >= size;
}

/// Nothing is loaded: the previous one, or one that another thread has left.
bool load(Magazines& magazines, std::size_t of_class) noexcept {
  if (magazines.previous != nullptr) {
    magazines.loaded = std::exchange(magazines.previous, nullptr);
    magazines.in_loaded = kMagazineSizes[of_class];
    return true;
  }
  // What is taken counts as the thread's own, until it is given on.
  const auto bytes = magazine_bytes(of_class);
  if (free_blocks.room < bytes && !has_room(bytes)) return false;
  magazines.loaded = depot.take(of_class);
  if (magazines.loaded == nullptr) return false;
  magazines.in_loaded = kMagazineSizes[of_class];
  free_blocks.room -= bytes;
  return true;
}

/// The loaded one is full: makes it the previous one, which goes to the depot.
void put_away(Magazines& magazines, std::size_t of_class) noexcept {
  auto* const before = std::exchange(magazines.previous, std::exchange(magazines.loaded, nullptr));
  magazines.in_loaded = 0;
  if (before == nullptr) return;
  free_blocks.room += magazine_bytes(of_class);
  if (!depot.give(before, of_class)) give_all(before);
}

}  // namespace

void* take_memory(std::size_t size) {
  const auto of_class = class_of(size);
  if (!kRecycles || of_class >= kBlockSizes) return ::operator new(size);
  auto& magazines = free_blocks.of_size[of_class];
  if (magazines.in_loaded == 0 && !load(magazines, of_class)) {
    return ::operator new(of_class* kBlockStep);
  }
  free_blocks.room += of_class * kBlockStep;
  --magazines.in_loaded;
  return std::exchange(magazines.loaded, magazines.loaded->next);
}

void give_memory(void* memory, std::size_t size) noexcept {
  const auto of_class = class_of(size);
  if (!kRecycles || of_class >= kBlockSizes) return ::operator delete(memory);
  const auto taken = of_class * kBlockStep;
  if (free_blocks.room < taken && !has_room(taken)) return ::operator delete(memory);
  auto& magazines = free_blocks.of_size[of_class];
  if (magazines.in_loaded == kMagazineSizes[of_class]) put_away(magazines, of_class);
  free_blocks.room -= taken;
  magazines.loaded = new (memory) FreeBlock{magazines.loaded, nullptr};
  ++magazines.in_loaded;
}

}  // namespace dlock::inline v0::detail

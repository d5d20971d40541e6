// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <pthread.h>

#include <array>
#include <cstdint>

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

constexpr std::size_t kStep = 32;
constexpr std::size_t kSizes = 128;  ///< so the largest is 4 KiB
/// Of one thread. A lock and unlock takes 10 KiB at most.
constexpr std::size_t kMostKept = std::size_t{64} * 1024;

struct FreeBlock {
  FreeBlock* next;
};

/// Needs no constructor and no destructor, so that to look costs nothing.
struct FreeBlocks {
  enum class State : std::uint8_t { untouched, open, closed };
  std::array<FreeBlock*, kSizes> of_size;
  std::size_t room;  ///< for more; none before the first use and after the thread's end
  State state;
};
constinit thread_local FreeBlocks free_blocks{};

constexpr std::size_t class_of(std::size_t size) { return (size + kStep - 1) / kStep; }

/// At the thread's end. What ends later still goes where all came from.
void drain(void* of) noexcept {
  auto& blocks = *static_cast<FreeBlocks*>(of);
  blocks.state = FreeBlocks::State::closed;
  blocks.room = 0;
  for (auto*& first : blocks.of_size) {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
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

}  // namespace

void* take_memory(std::size_t size) {
  const auto of_class = class_of(size);
  if (!kRecycles || of_class >= kSizes) return ::operator new(size);
  auto*& first = free_blocks.of_size[of_class];
  if (first == nullptr) return ::operator new(of_class* kStep);
  free_blocks.room += of_class * kStep;
  return std::exchange(first, first->next);
}

void give_memory(void* memory, std::size_t size) noexcept {
  const auto of_class = class_of(size);
  if (!kRecycles || of_class >= kSizes) return ::operator delete(memory);
  const auto taken = of_class * kStep;
  if (free_blocks.room < taken && !has_room(taken)) return ::operator delete(memory);
  free_blocks.room -= taken;
  auto*& first = free_blocks.of_size[of_class];
  first = new (memory) FreeBlock{first};
}

}  // namespace dlock::inline v0::detail

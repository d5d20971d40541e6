// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <pthread.h>

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "core/loop/memory_poison.hpp"

namespace dlock::inline v0::detail {
namespace {

constexpr std::size_t kBlockStep = 32;
constexpr std::size_t kBlockSizes = 128;  ///< the largest block is 4,064 bytes

/// Stored in the free block itself.
struct FreeBlock {
  FreeBlock* next;
};

/// The free blocks of a thread, a list for each size. Needs no constructor and no destructor, so
/// that an access has no check for either.
struct FreeBlocks {
  enum class State : std::uint8_t { untouched, open, closed };
  std::array<FreeBlock*, kBlockSizes> of_size;
  std::size_t bytes;
  State state;
};
constinit thread_local FreeBlocks free_blocks{};

/// Frees the blocks at the end of the thread. operator delete frees the blocks that arrive later.
void drain(void* /*unused*/) noexcept {
  free_blocks.state = FreeBlocks::State::closed;
  free_blocks.bytes = 0;
  for (std::size_t size_class = 1; size_class < kBlockSizes; ++size_class) {
    auto* block = std::exchange(free_blocks.of_size[size_class], nullptr);
    while (block != nullptr) {
      unpoison_memory(block, size_class * kBlockStep);
      ::operator delete(std::exchange(block, block->next));
    }
  }
}

/// Calls drain(). A destructor of a thread_local object cannot: glibc ends the process when it has
/// no memory to register one.
struct ThreadEnds {
  pthread_key_t key{};
  const bool made = ::pthread_key_create(&key, &drain) == 0;
};
const ThreadEnds thread_ends;

/// Returns whether this thread keeps free blocks.
bool is_open() noexcept {
  if (free_blocks.state == FreeBlocks::State::untouched && thread_ends.made &&
      ::pthread_setspecific(thread_ends.key, &free_blocks) == 0) {
    free_blocks.state = FreeBlocks::State::open;
  }
  return free_blocks.state == FreeBlocks::State::open;
}

constexpr std::size_t class_of(std::size_t size) { return (size + kBlockStep - 1) / kBlockStep; }

/// False for no bytes and for a block that is too large.
constexpr bool is_kept(std::size_t size_class) { return size_class - 1 < kBlockSizes - 1; }

}  // namespace

void* take_memory(std::size_t size) {
  const auto size_class = class_of(size);
  if (!is_kept(size_class)) return ::operator new(size);
  const auto bytes = size_class * kBlockStep;
  auto& first = free_blocks.of_size[size_class];
  if (first == nullptr) return ::operator new(bytes);
  unpoison_memory(first, bytes);
  free_blocks.bytes -= bytes;
  return std::exchange(first, first->next);
}

void give_memory(void* memory, std::size_t size) noexcept {
  const auto size_class = class_of(size);
  const auto bytes = size_class * kBlockStep;
  if (!is_kept(size_class) || free_blocks.bytes + bytes > kMostRecycled || !is_open()) {
    return ::operator delete(memory);
  }
  auto& first = free_blocks.of_size[size_class];
  first = new (memory) FreeBlock{first};
  free_blocks.bytes += bytes;
  // The link stays readable: LeakSanitizer follows no poisoned pointer, and would report the next
  // block.
  poison_memory(first + 1, bytes - sizeof(FreeBlock));
}

std::size_t kept_memory() noexcept { return free_blocks.bytes; }

}  // namespace dlock::inline v0::detail

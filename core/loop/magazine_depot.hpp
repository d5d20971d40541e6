// SPDX-License-Identifier: Apache-2.0
//
// Where threads exchange recycled memory: what ends on another thread than it began on piles up
// there and is missing here. Blocks of one size go in magazines, so that a thread comes by once for
// some of them. As in Bonwick and Adams, "Magazines and Vmem" (USENIX 2001).
//
// Nobody ever waits: who finds the shelf in use goes to malloc() instead. So it is also for a
// child process that was forked while a thread was at it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dlock::inline v0::detail {

/// Lies in the memory that it stands for.
struct FreeBlock {
  FreeBlock* next;           ///< of the same magazine
  FreeBlock* next_magazine;  ///< of the first in one, at the depot
};

inline constexpr std::size_t kBlockStep = 32;
inline constexpr std::size_t kBlockSizes = 128;  ///< so the largest is below 4 KiB

/// Blocks of a magazine by size class: 2 KiB in all, one at least.
inline constexpr auto kMagazineSizes = [] {
  constexpr std::size_t kMost = 16;
  constexpr std::size_t kBytes = 2048;
  std::array<std::uint8_t, kBlockSizes> sizes{};
  for (std::size_t of_class = 1; of_class < kBlockSizes; ++of_class) {
    const auto blocks = std::clamp<std::size_t>(kBytes / (of_class * kBlockStep), 1, kMost);
    sizes.at(of_class) = static_cast<std::uint8_t>(blocks);
  }
  return sizes;
}();

constexpr std::size_t magazine_bytes(std::size_t of_class) noexcept {
  return kMagazineSizes[of_class] * of_class * kBlockStep;
}

/// Any thread. Has nothing to construct or to destroy: what ends last may come here.
class MagazineDepot {
 public:
  constexpr explicit MagazineDepot(std::size_t most_bytes) noexcept : most_(most_bytes) {}

  /// A full magazine of this class, or none.
  FreeBlock* take(std::size_t of_class) noexcept;
  /// `magazine` is full. False: it has not been taken in.
  bool give(FreeBlock* magazine, std::size_t of_class) noexcept;

 private:
  struct Shelf {
    std::atomic<bool> in_use{false};
    std::atomic<FreeBlock*> first{nullptr};
  };
  class Hold;

  std::array<Shelf, kBlockSizes> shelves_{};
  std::atomic<std::size_t> bytes_{0};
  const std::size_t most_;
};

}  // namespace dlock::inline v0::detail

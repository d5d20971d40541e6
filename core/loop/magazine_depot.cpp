// SPDX-License-Identifier: Apache-2.0
#include "core/loop/magazine_depot.hpp"

namespace dlock::inline v0::detail {

/// The shelf, if nobody else is at it.
class MagazineDepot::Hold {
 public:
  explicit Hold(Shelf& shelf) noexcept
      : shelf_(shelf), has_(!shelf.in_use.exchange(true, std::memory_order_acquire)) {}
  ~Hold() {
    if (has_) shelf_.in_use.store(false, std::memory_order_release);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  explicit operator bool() const noexcept { return has_; }

 private:
  Shelf& shelf_;
  const bool has_;
};

FreeBlock* MagazineDepot::take(std::size_t of_class) noexcept {
  auto& shelf = shelves_[of_class];
  if (shelf.first.load(std::memory_order_relaxed) == nullptr) return nullptr;
  const Hold hold(shelf);
  if (!hold) return nullptr;
  auto* const magazine = shelf.first.load(std::memory_order_relaxed);
  if (magazine == nullptr) return nullptr;
  shelf.first.store(magazine->next_magazine, std::memory_order_relaxed);
  bytes_.fetch_sub(magazine_bytes(of_class), std::memory_order_relaxed);
  return magazine;
}

bool MagazineDepot::give(FreeBlock* magazine, std::size_t of_class) noexcept {
  const auto bytes = magazine_bytes(of_class);
  // Several at once may go past it, by a magazine each.
  if (bytes_.load(std::memory_order_relaxed) + bytes > most_) return false;
  auto& shelf = shelves_[of_class];
  const Hold hold(shelf);
  if (!hold) return false;
  magazine->next_magazine = shelf.first.load(std::memory_order_relaxed);
  shelf.first.store(magazine, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace dlock::inline v0::detail

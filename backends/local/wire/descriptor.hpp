// SPDX-License-Identifier: Apache-2.0
//
// An open file descriptor of dlock. Its owner may be destroyed in a fork()ed child. There the
// number was closed already (descriptors that keep a lock), or belongs to other code: it is not
// closed twice.
#pragma once

#include <utility>

namespace dlock::local {

/// Distinct objects are independent.
class Descriptor {
 public:
  /// plain: inherited by a fork()ed child. lock: closed in a child at once, or the child would keep
  /// the lock of a killed parent.
  enum class Kind { plain, lock };

  Descriptor() = default;
  explicit Descriptor(int number, Kind kind = Kind::plain);
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)),
        kind_(other.kind_),
        generation_(other.generation_) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  void reset() noexcept;
  /// Passes the descriptor to the caller.
  int release() noexcept;

 private:
  int number_ = -1;
  Kind kind_ = Kind::plain;
  unsigned generation_ = 0;
};

}  // namespace dlock::local

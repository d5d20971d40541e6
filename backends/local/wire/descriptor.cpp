// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/descriptor.hpp"

#include <unistd.h>

#include "dlock/spi/fork.hpp"

namespace dlock::local {

Descriptor::Descriptor(int number, Kind kind)
    : number_(number), kind_(kind), generation_(fork_generation()) {
  if (number_ >= 0 && kind_ == Kind::lock) close_in_fork_child(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    number_ = std::exchange(other.number_, -1);
    kind_ = other.kind_;
    generation_ = other.generation_;
  }
  return *this;
}

void Descriptor::reset() noexcept {
  if (number_ < 0) return;
  if (generation_ == fork_generation()) {
    if (kind_ == Kind::lock) keep_in_fork_child(number_);
    ::close(number_);
  }
  number_ = -1;
}

int Descriptor::release() noexcept {
  if (number_ >= 0 && kind_ == Kind::lock) keep_in_fork_child(number_);
  return std::exchange(number_, -1);
}

}  // namespace dlock::local

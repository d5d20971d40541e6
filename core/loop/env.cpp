// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/env.hpp"

#include <fmt/format.h>

namespace dlock::inline v0 {

std::string make_uuid(Env& env) {
  const auto high = (env.random() & ~0xf000ULL) | 0x4000ULL;
  const auto low = (env.random() & ~(3ULL << 62)) | (2ULL << 62);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffff'ffff'ffffULL);
}

}  // namespace dlock::inline v0

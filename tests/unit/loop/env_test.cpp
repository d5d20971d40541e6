// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/env.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/virtual_env.hpp"

namespace dlock::core {
namespace {

TEST(Env, AUuidIsOfVersionFourAndHasAllRandomBits) {
  for (std::uint64_t seed = 1; seed <= 64; ++seed) {
    tests::VirtualEnv env(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t high = random();
    const std::uint64_t low = random();
    const auto uuid = make_uuid(env);
    EXPECT_EQ(uuid, fmt::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}", high >> 32U,
                                high >> 16U & 0xffffU, high & 0xfffU, 8U | (low >> 60U & 3U),
                                low >> 48U & 0xfffU, low & 0xffff'ffff'ffffU));
    EXPECT_EQ(std::strlen(uuid.c_str()), 36U);
  }
}

}  // namespace
}  // namespace dlock::core

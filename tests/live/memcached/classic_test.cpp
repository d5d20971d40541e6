// SPDX-License-Identifier: Apache-2.0
//
// Where a server or a proxy knows no meta commands: the classic ones, in the same order, and beside
// clients that use the others.
#include <gtest/gtest.h>

#include "testkit/fault_proxy.hpp"
#include "tests/live/memcached/classic.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

class MemcachedClassic : public MemcachedTest {};

TEST_F(MemcachedClassic, AcquireIsTwoRoundTripsAndReleaseTwo) {
  FaultProxy proxy(port());
  bool any_meta = false;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    const bool is_meta =
        bytes.starts_with("m") || bytes.find("\r\nmn\r\n") != std::string_view::npos;
    if (direction == Direction::to_server && is_meta) any_meta = true;
    return Verdict::forward;
  });
  auto locks = open_classic(memcached_url(proxy.port()));
  EXPECT_FALSE(locks.lock("x")->acquire().release());
  const auto lock = locks.lock("x");
  auto before = proxy.stats().turns;
  auto held = lock->acquire();
  EXPECT_EQ(proxy.stats().turns - before, 2U);
  before = proxy.stats().turns;
  EXPECT_FALSE(held.release());
  EXPECT_EQ(proxy.stats().turns - before, 2U);
  EXPECT_FALSE(any_meta);
}

TEST_F(MemcachedClassic, ExcludesWhoUsesMetaCommandsAndIsExcluded) {
  auto classic = open_classic(url("?lease=3s"));
  auto meta = open_memcached(url("?lease=3s"));
  auto held = classic.lock("x")->acquire();
  EXPECT_FALSE(meta.lock("x")->try_acquire());
  const auto token = held.token();
  EXPECT_FALSE(held.release());
  auto next = meta.lock("x")->acquire();
  EXPECT_GT(next.token(), token);
  EXPECT_FALSE(classic.lock("x")->try_acquire());
  // A renewal by either, and a release by what was stored then.
  const auto renewed = stat(port(), "cas_hits");
  auto other = classic.lock("y")->acquire();
  ASSERT_TRUE(eventually(patience(), [&] { return stat(port(), "cas_hits") >= renewed + 4; }));
  EXPECT_FALSE(next.release());
  EXPECT_FALSE(other.release());
  EXPECT_FALSE(has_key(port(), "dlock:x"));
  EXPECT_FALSE(has_key(port(), "dlock:y"));
}

}  // namespace
}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// A seal takes the place of the node that a waiter has just seen ahead of it, before it can watch
// that node.
#include <gtest/gtest.h>

#include <atomic>

#include "testkit/fault_proxy.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::testkit {
namespace {

TEST(ZooKeeperSeal, IsMetByAWaiterThatHasNotYetWatchedWhoItTookThePlaceOf) {
  ZooKeeperServer server;
  server.start();
  FaultProxy proxy(server.port());
  DirectClient holder("zookeeper://127.0.0.1:" + std::to_string(server.port()));
  DirectClient waiter("zookeeper://127.0.0.1:" + std::to_string(proxy.port()));
  const auto held = holder.acquire("orders/42");
  std::atomic<int> sealed = 0;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    // The first request of the waiter that names the holder's node is the one that watches it.
    const bool watches = direction == Direction::to_server &&
                         bytes.find("-lock-0000000000") != std::string_view::npos;
    if (watches && sealed.fetch_add(1) == 0) {
      EXPECT_EQ(holder.seal(held, "the record").status, RecordStatus::done);
    }
    return Verdict::forward;
  });
  const auto claim = waiter.make("orders/42");
  const auto answer = waiter.claim(claim);
  EXPECT_GE(sealed, 1);
  EXPECT_EQ(answer.status, ClaimStatus::sealed);
  EXPECT_EQ(answer.record, "the record");
  EXPECT_EQ(waiter.release(claim), ReleaseStatus::released);
}

}  // namespace
}  // namespace dlock::testkit

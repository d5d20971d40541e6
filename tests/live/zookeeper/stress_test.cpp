// SPDX-License-Identifier: Apache-2.0
//
// Many threads on few locks while the links break all the time: exclusion holds, nothing crashes,
// nothing is left in the store. Meant for the sanitizer builds too (F68, F70).
//
// DLOCK_STRESS_SECONDS sets how long (default 5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"
#include "tests/support/guarded.hpp"

namespace dlock::testkit {
namespace {

std::chrono::seconds stress_time() {
  const char* given = std::getenv("DLOCK_STRESS_SECONDS");
  return std::chrono::seconds(given == nullptr ? 5 : std::atoi(given));
}

TEST(ZooKeeperStress, F68_LinksBreakAllTheTime) {
  ZooKeeperServer server({.tick = 500ms});
  server.start();
  ZooKeeperFrames frames;
  FaultProxy proxy(server.port(), frames.filter());
  Guarded guarded;
  {
    std::vector<LockManager> managers;
    for (int i = 0; i < 3; ++i) {
      managers.push_back(open_zookeeper(url_of({proxy.port()}, "/app?session_timeout=4s")));
      managers.back().connect();
    }
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 12; ++i) {
      threads.emplace_back(work_under_a_lock, managers[i % 3].lock("job"), std::ref(guarded),
                           std::cref(stop), i, 300ms);
    }
    std::mt19937 dice(7);
    const auto end = within(stress_time());
    while (Clock::now() < end) {
      const auto connects = frames.connects();
      switch (dice() % 4) {
        case 0:
          proxy.drop_all();
          break;
        case 1:
          proxy.reset_after(Direction::to_server, dice() % 2000);
          break;
        case 2:
          proxy.reset_after(Direction::to_client, dice() % 2000);
          break;
        case 3:
          frames.once(FrameKind::reply, opcode::create2, Verdict::reset);
          break;
      }
      eventually(within(100ms), [&] { return frames.connects() > connects; });
      const auto grants = guarded.grants.load();
      eventually(within(200ms), [&] { return guarded.grants > grants + 3; });
    }
    stop = true;
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(guarded.overlaps, 0);
  EXPECT_EQ(guarded.stale_tokens, 0);
  EXPECT_GT(guarded.grants, 10);
  std::cout << guarded.grants << " grants, " << frames.connects() << " connections\n";
  BareClient client(server.port());
  EXPECT_TRUE(eventually(within(10s), [&] { return client.children("/app/job").empty(); }));
  EXPECT_EQ(watches_of_locks(server), 0);
}

}  // namespace
}  // namespace dlock::testkit

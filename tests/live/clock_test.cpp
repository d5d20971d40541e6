// SPDX-License-Identifier: Apache-2.0
//
// Wall clocks that are set while locks are held: the holder's, and the server's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "testkit/wall_clock.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Of `leased` below; Memcached frees an item up to a second later.
constexpr auto kLongerThanALease = 3500ms;

std::string leased(const std::string& backend, const std::string& url) {
  if (backend == "zookeeper") return url + "app?session_timeout=2s";
  if (backend == "redis") return url + "?lease=1500ms";
  if (backend == "memcached") return url + "?lease=3s";
  return url;
}

OpenOptions quiet() {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

std::vector<std::string> shared_stores(bool with_a_server) {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) {
    const bool server = backend->name != "memory" && backend->name != "local";
    if (server || (!with_a_server && backend->name == "local")) names.emplace_back(backend->name);
  }
  return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class HoldersClock : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Process> hold(const WallClock& clock) const {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--store", url_, "hold", "x"};
    options.env = clock.environment();
    options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE", "DLOCK_TOKEN", "DLOCK_NAME"};
    return std::make_unique<Process>(std::move(options));
  }
  static std::uint64_t token_of(const std::string& line) {
    const std::string key = "\"token\":";
    const auto at = line.find(key);
    return at == std::string::npos ? 0 : std::stoull(line.substr(at + key.size()));
  }

  const RunningStore store_ = start_store(GetParam());
  const std::string url_ = leased(GetParam(), store_.url);
};
INSTANTIATE_TEST_SUITE_P(Stores, HoldersClock, testing::ValuesIn(shared_stores(false)), name_of);

TEST_P(HoldersClock, F25_SetByAnHourHasNoEffect) {
  const TempDir clock_folder("dlock-clock");
  WallClock clock(DLOCK_CLOCK_SHIM, clock_folder.path() / "clock");
  const auto holder = hold(clock);
  auto line = holder->read_line(patience());
  ASSERT_TRUE(line) << holder->collected_stderr();
  const auto token = token_of(*line);
  auto rival = LockManager::open(url_, quiet());
  // Longer than a lease, where there is one: it is renewed meanwhile.
  const std::chrono::milliseconds wait = GetParam() == "local" ? 500ms : kLongerThanALease;
  for (const auto wrong : {1h, -1h}) {
    clock.be_wrong_by(wrong);
    EXPECT_FALSE(rival.lock("x")->try_acquire({.wait = wait}));
  }
  EXPECT_EQ(holder->read_line(within(0s)), std::nullopt) << "neither suspect nor lost";
  // An hour behind from its beginning.
  auto next = hold(clock);
  EXPECT_EQ(next->read_line(within(200ms)), std::nullopt);
  holder->close_stdin();
  line = holder->read_line(patience());
  EXPECT_THAT(line.value_or(""), HasSubstr("released"));
  line = next->read_line(patience());
  EXPECT_THAT(line.value_or(""), HasSubstr("\"held\""));
  EXPECT_GT(token_of(line.value_or("")), token);
}

struct ClockedServer {
  std::shared_ptr<Server> server;
  WallClock* clock = nullptr;
};

ClockedServer clocked(const std::string& backend) {
  const auto made = [](auto server) { return ClockedServer{server, &server->clock()}; };
  const std::string shim = DLOCK_CLOCK_SHIM;
  if (backend == "zookeeper") {
    return made(std::make_shared<WithWallClock<ZooKeeperServer>>(shim));
  }
  if (backend == "redis") return made(std::make_shared<WithWallClock<RedisServer>>(shim));
  if (backend == "memcached") return made(std::make_shared<WithWallClock<MemcachedServer>>(shim));
  throw std::invalid_argument(backend);
}

bool rests_on_the_clock(LockManager& locks) {
  const auto report = locks.inspect().front();
  const auto& assumptions = report.capabilities.value().assumptions;
  return std::any_of(assumptions.begin(), assumptions.end(), [](const auto& assumption) {
    return assumption.name == "server_clock_not_stepped";
  });
}

class ServersClock : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { store_.server->start(); }
  LockManager open() {
    return LockManager::open(leased(GetParam(), store_.server->url()), quiet());
  }

  const ClockedServer store_ = clocked(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Stores, ServersClock, testing::ValuesIn(shared_stores(true)), name_of);

// Where the store does not rest on the clock that is set, nothing happens. Where it does, and says
// so, a step forward frees the lock, and its holder is told at the next renewal.
TEST_P(ServersClock, AStepForwardDoesWhatTheStoreDeclares) {
  auto locks = open();
  auto rival = open();
  auto held = locks.lock("x")->acquire();
  const auto token = held.token().value();
  store_.clock->be_wrong_by(1h);
  auto next = rival.lock("x")->try_acquire({.wait = kLongerThanALease});
  ASSERT_EQ(next.has_value(), rests_on_the_clock(rival));
  if (!next) {
    EXPECT_EQ(held.state(), HandleState::held);
    EXPECT_FALSE(held.release());
    return;
  }
  EXPECT_TRUE(eventually(within(2s), [&] { return held.state() == HandleState::lost; }));
  EXPECT_GT(*next->token(), token) << "fencing still stops the one who was not told yet";
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(next->state(), HandleState::held);
}

TEST_P(ServersClock, AStepBackLowersNoToken) {
  auto locks = open();
  auto held = locks.lock("x")->acquire();
  const auto token = held.token().value();
  store_.clock->be_wrong_by(-1h);
  EXPECT_FALSE(open().lock("x")->try_acquire({.wait = 500ms}));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  auto next = locks.lock("x")->acquire({.wait = 30s});
  EXPECT_GT(next.token().value(), token);
}

}  // namespace
}  // namespace dlock::testkit

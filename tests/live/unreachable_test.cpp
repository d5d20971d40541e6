// SPDX-License-Identifier: Apache-2.0
//
// Exit statuses of `dlock run` for a store that does not answer, and for a waiter whose process was
// stopped. Rule: the last answer of the store decides, and no failure was seen since.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <future>
#include <optional>
#include <set>

#include "dlock/lock_manager.hpp"
#include "testkit/ports.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Time that a busy machine adds to the bounds of docs/cli.md.
constexpr std::chrono::seconds kSlack{2};
constexpr int kUnavailable = 69;
constexpr int kForeign = 65;
constexpr int kTimedOut = 75;

/// The binary of this build, unless DLOCK_TEST_BINARY names another.
std::string dlock_binary() {
  const char* other =
      std::getenv("DLOCK_TEST_BINARY");  // NOLINT(concurrency-mt-unsafe): no thread sets it
  return other != nullptr ? other : DLOCK_BINARY;
}

ProcessOptions dlock_on(const std::string& url, std::vector<std::string> words) {
  ProcessOptions options;
  options.argv = {dlock_binary(), "--store", url};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  return options;
}

enum class Fault { frozen, wrong_server, silent_resolver, closed_port, no_tls };

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::frozen:
      return "frozen";
    case Fault::wrong_server:
      return "wrong server";
    case Fault::silent_resolver:
      return "silent resolver";
    case Fault::closed_port:
      return "closed port";
    case Fault::no_tls:
      return "no TLS on the port";
  }
  return "";
}

struct Row {
  std::string store;
  Fault fault = Fault::frozen;
  int status = kUnavailable;
  const char* cause = "";  ///< part of the message
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"redis", Fault::frozen, kUnavailable, "127.0.0.1:"},
      {"redis", Fault::wrong_server, kForeign, "does the port belong to a Redis server?"},
      {"redis", Fault::silent_resolver, kUnavailable, "silent.test"},
      {"redis", Fault::closed_port, kUnavailable, "Connection refused"},
      {"redis", Fault::no_tls, kUnavailable, "TLS"},
      {"memcached", Fault::frozen, kUnavailable, "127.0.0.1:"},
      {"memcached", Fault::wrong_server, kForeign, "unknown command"},
      {"memcached", Fault::silent_resolver, kUnavailable, "silent.test"},
      {"memcached", Fault::closed_port, kUnavailable, "Connection refused"},
      {"zookeeper", Fault::frozen, kUnavailable, "does not answer"},
      {"zookeeper", Fault::wrong_server, kUnavailable, "is it a ZooKeeper server?"},
      {"zookeeper", Fault::silent_resolver, kUnavailable, "silent.test"},
      {"zookeeper", Fault::closed_port, kUnavailable, "refused the connection"},
  };
  return all;
}

struct Wait {
  const char* text;
  std::chrono::seconds at_most;
};
constexpr std::array<Wait, 3> kWaits{{{"0", 3s}, {"1s", 3s}, {"5s", 7s}}};

struct Ended {
  std::optional<ExitStatus> status;
  Clock::duration took{};
  std::string err;
};

/// `-E 0`: a job that is skipped without a reason would be a success.
Ended run_job(const std::string& url, const char* wait, const std::string& hosts) {
  auto options = dlock_on(url, {"run", "job", "--wait", wait, "-E", "0", "--", "true"});
  options.env = {{"LD_PRELOAD", DLOCK_HOSTS_SHIM}, {"DLOCK_TEST_HOSTS", hosts}};
  Ended ended;
  const auto begun = Clock::now();
  Process process(std::move(options));
  ended.status = process.wait(within(30s));
  ended.took = Clock::now() - begun;
  ended.err = process.collected_stderr();
  return ended;
}

class Unreachable : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* backend : OpenOptions::built_in().backends) built_in_.insert(backend->name);
    write_file(folder_ / "hosts", "silent silent.test\n");
    redis_.start();
    memcached_.start();
    frozen_redis_.start();
    frozen_memcached_.start();
    frozen_redis_.pause();
    frozen_memcached_.pause();
    if (!has("zookeeper")) return;
    frozen_zookeeper_.start();
    frozen_zookeeper_.pause();
  }

  bool has(std::string_view store) const { return built_in_.contains(store); }
  std::string hosts() const { return (folder_ / "hosts").string(); }

  const Server& frozen_server(std::string_view store) const {
    if (store == "redis") return frozen_redis_;
    if (store == "memcached") return frozen_memcached_;
    return frozen_zookeeper_;
  }

  std::string address(const Row& row) const {
    switch (row.fault) {
      case Fault::frozen:
        return fmt::format("127.0.0.1:{}", frozen_server(row.store).port());
      case Fault::wrong_server:
        return fmt::format("127.0.0.1:{}",
                           row.store == "redis" ? memcached_.port() : redis_.port());
      case Fault::silent_resolver:
        return "silent.test";
      case Fault::closed_port:
        return fmt::format("127.0.0.1:{}", nothing_.number());
      case Fault::no_tls:
        return fmt::format("127.0.0.1:{}", redis_.port());
    }
    return {};
  }

  std::string url(const Row& row) const {
    const auto scheme = row.fault == Fault::no_tls ? "rediss" : row.store;
    return scheme + "://" + address(row) + (row.store == "zookeeper" ? "/app" : "");
  }

 private:
  TempDir folder_{"dlock-unreachable"};
  std::set<std::string_view> built_in_;
  RedisServer redis_;
  RedisServer frozen_redis_;
  MemcachedServer memcached_;
  MemcachedServer frozen_memcached_;
  ZooKeeperServer frozen_zookeeper_;
  Port nothing_;
};

TEST_F(Unreachable, IsUnavailableWithItsCauseInTimeAndNeverBusy) {
  struct Case {
    const Row& row;
    const Wait& wait;
    std::future<Ended> ended;
  };
  std::deque<Case> cases;
  for (const auto& row : rows()) {
    if (!has(row.store)) continue;
    for (const auto& wait : kWaits) {
      cases.push_back(
          {row, wait, std::async(std::launch::async, run_job, url(row), wait.text, hosts())});
    }
  }
  for (auto& [row, wait, future] : cases) {
    const auto ended = future.get();
    SCOPED_TRACE(fmt::format("{}, {}, --wait {}, after {:.1f} s: {}", row.store, name_of(row.fault),
                             wait.text, std::chrono::duration<double>(ended.took).count(),
                             ended.err));
    EXPECT_EQ(ended.status.value_or(ExitStatus{}).shell_status(), row.status);
    EXPECT_LE(ended.took, wait.at_most + kSlack);
    EXPECT_THAT(ended.err, HasSubstr(row.cause));
  }
}

/// Waits for the lock x in a process that is stopped from before the end of its wait until after
/// the end of its session.
Ended wait_while_stopped(const RunningStore& store) {
  const bool has_session = store.backend == "zookeeper";
  const auto url = store.url + (has_session ? "app?session_timeout=2s" : "");
  auto observers = LockManager::open(url);
  Process holder(dlock_on(url, {"hold", "x"}));
  holder.read_line(patience());
  Process waiter(dlock_on(url, {"-q", "run", "x", "--wait", "2s", "--", "true"}));
  const auto over = within(2s);
  const auto is_waiting = [&] { return !observers.status("x").waiting.empty(); };
  // Memcached does not show its waiters.
  if (store.backend == "memcached") {
    waiter.wait(within(1s));
  } else {
    EXPECT_TRUE(eventually(over, is_waiting));
  }
  waiter.pause();
  EXPECT_FALSE(waiter.wait(over + 1s)) << "it was not stopped in time";
  if (has_session) {
    EXPECT_TRUE(eventually(patience(), [&] { return !is_waiting(); })) << "its session lives";
  }
  waiter.resume();
  Ended ended;
  ended.status = waiter.wait(patience());
  ended.err = waiter.collected_stderr();
  return ended;
}

TEST(StoppedWaiter, IsTimedOutOnAStoreThatWorkedAllTheTime) {
  const auto stores = start_every_store();
  std::vector<std::future<Ended>> all;
  for (const auto& store : stores) {
    all.push_back(std::async(std::launch::async, wait_while_stopped, std::cref(store)));
  }
  for (std::size_t i = 0; i < stores.size(); ++i) {
    const auto ended = all[i].get();
    EXPECT_EQ(ended.status.value_or(ExitStatus{}).shell_status(), kTimedOut)
        << stores[i].backend << ": " << ended.err;
  }
}

}  // namespace
}  // namespace dlock::testkit

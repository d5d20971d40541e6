// SPDX-License-Identifier: Apache-2.0
//
// Clients of other makes on a lock that a migration has sealed: they wait until it is opened, and
// take nothing away. Each waits in a process of its own and prints when it holds the lock, on a
// clock that all processes of the machine share.
#include <gtest/gtest.h>

#include <sstream>

#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::testkit {
namespace {

constexpr const char* kRedisPy = R"py(
import sys, time, redis
server = redis.Redis(port=int(sys.argv[1]))
print("tried", server.lock("orders/42", timeout=60).acquire(blocking=False), flush=True)
lock = server.lock("orders/42", timeout=60, sleep=0.01)
lock.acquire()
print("held", time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
)py";

// Which needs to be told that our nodes and Curator's are locks, too.
constexpr const char* kKazoo = R"py(
import sys, time
from kazoo.client import KazooClient
client = KazooClient(hosts="127.0.0.1:" + sys.argv[1])
client.start()
path = "/orders/42"
tried = client.Lock(path, extra_lock_patterns=["-lock-"])
print("tried", tried.acquire(blocking=False), flush=True)
lock = client.Lock(path, extra_lock_patterns=["-lock-"])
lock.acquire()
print("held", time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
)py";

struct Peer {
  const char* program;
  std::uint16_t port;
};

ProcessOptions python(const Peer& peer) {
  ProcessOptions options;
  options.argv = {"/usr/bin/python3", "-c", peer.program, std::to_string(peer.port)};
  return options;
}

std::string first_word(const std::string& line) { return line.substr(0, line.find(' ')); }

/// `waits`: the foreign client has asked for the lock, as far as the server can tell.
void meets_the_seal(const std::string& url, const Peer& peer, const std::function<bool()>& waits) {
  DirectClient client(url);
  ASSERT_EQ(client.seal(client.acquire("orders/42"), "first").status, RecordStatus::done);
  Process foreign(python(peer));
  EXPECT_EQ(foreign.read_line(patience()), "tried False") << foreign.collected_stderr();
  ASSERT_TRUE(eventually(patience(), waits));
  // It is told of a change, and looks again.
  ASSERT_EQ(client.set_record("orders/42", "first", "second").status, RecordStatus::done);
  EXPECT_EQ(client.record("orders/42").found, "second");
  const auto before = BoottimeClock::now();
  ASSERT_EQ(client.set_record("orders/42", "second", std::nullopt).status, RecordStatus::done);
  const auto held = foreign.read_line(patience());
  ASSERT_TRUE(held) << foreign.collected_stderr();
  ASSERT_EQ(first_word(*held), "held");
  const TimePoint when{std::chrono::nanoseconds(std::stoll(held->substr(5)))};
  EXPECT_GT(when, before) << "not while the record stood there";
  // And now it is a lock like any other.
  const auto claim = client.make("orders/42", false);
  EXPECT_EQ(client.claim(claim).status, ClaimStatus::busy);
  client.release(claim);
  foreign.close_stdin();
  EXPECT_EQ(foreign.read_line(patience()), "released");
  client.acquire("orders/42");
}

TEST(ForeignMigration, RedisPyWaitsBehindASeal) {
  RedisServer server;
  server.start();
  const auto url = "redis://127.0.0.1:" + std::to_string(server.port()) + "/0?key=%7Bname%7D";
  const auto tries = [&] {
    const auto stats = ask(server.port(), "INFO commandstats\r\nQUIT\r\n", "+OK\r\n", patience());
    const auto at = stats.find("cmdstat_set:calls=");
    return at == std::string::npos ? 0L : std::stol(stats.substr(at + 18));
  };
  // Ours are among them; redis-py tries a hundred times a second.
  meets_the_seal(url, {kRedisPy, server.port()}, [&] { return tries() > 20; });
}

TEST(ForeignMigration, KazooWaitsBehindASeal) {
  ZooKeeperServer server;
  server.start();
  const auto url = "zookeeper://127.0.0.1:" + std::to_string(server.port());
  DirectClient observer(url);
  meets_the_seal(url, {kKazoo, server.port()}, [&] {
    const auto status = observer.run(observer.backend().inspect("orders/42", DirectClient::soon()));
    return status.value && status.value->waiting.size() == 1;
  });
}

}  // namespace
}  // namespace dlock::testkit

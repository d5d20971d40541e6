// SPDX-License-Identifier: Apache-2.0
//
// Servers and proxies that ignore conditions, each of which would grant one lock twice: the
// self-test refuses them.
#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "testkit/scripted_server.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/sockets.hpp"
#include "tests/live/hostile/hostile.hpp"
#include "tests/live/hostile/resp.hpp"
#include "tests/live/hostile/small_memcached.hpp"
#include "tests/support/careless_proxy.hpp"

namespace dlock::hostile {
namespace {

using testing::HasSubstr;
using testkit::careless;
using testkit::ConnectionId;
using testkit::Dialect;
using testkit::Direction;
using testkit::FaultProxy;
using testkit::Ignored;
using testkit::Piece;
using testkit::ScriptedAnswer;
using testkit::ScriptedServer;
using testkit::Verdict;

/// Two managers try to acquire one lock, one after the other.
struct Contest {
  int granted = 0;
  error_code error;  ///< of the last one
  std::string text;
};

Contest contest(const std::string& url) {
  Contest result;
  std::vector<LockManager> managers;
  std::vector<LockHandle> held;
  for (int i = 0; i < 2; ++i) {
    managers.push_back(LockManager::open(url, quiet()));
    Diagnostics diagnostics;
    AcquireOptions options;
    options.wait = 1500ms;
    options.diagnostics = &diagnostics;
    auto handle = managers.back().lock("orders/42")->acquire(options, {}, result.error);
    result.text = diagnostics.server_text;
    if (!handle) continue;
    ++result.granted;
    held.push_back(std::move(handle));
  }
  return result;
}

void expect_refused(const std::string& url, const std::string& step) {
  const auto result = contest(url);
  EXPECT_EQ(result.granted, 0) << "granted to so many";
  EXPECT_EQ(result.error, errc::config_unsafe) << result.error.message();
  EXPECT_THAT(result.text, HasSubstr("fails the self-test at step '" + step + "'"));
}

std::string memcached_url(std::uint16_t port) {
  return fmt::format("memcached://127.0.0.1:{}?{}", port, kImpatient);
}

std::string redis_url(std::uint16_t port) {
  return fmt::format("redis://127.0.0.1:{}/0?{}", port, kImpatient);
}

struct Careless {
  const char* name;
  Ignored ignored;
  Dialect dialect;
  const char* step;
};
void PrintTo(const Careless& row, std::ostream* out) { *out << row.name; }

class SelfTestOfMemcached : public testing::TestWithParam<Careless> {};

TEST_P(SelfTestOfMemcached, RefusesAProxyThatIgnoresACondition) {
  testkit::MemcachedServer server;
  server.start();
  const auto& [name, ignored, dialect, step] = GetParam();
  const FaultProxy proxy(server.port(), careless(ignored, dialect));
  expect_refused(memcached_url(proxy.port()), step);
}

INSTANTIATE_TEST_SUITE_P(
    All, SelfTestOfMemcached,
    testing::Values(
        Careless{"Add", Ignored::add, Dialect::meta, "acquire as another owner"},
        Careless{"AddClassic", Ignored::add, Dialect::classic, "acquire as another owner"},
        Careless{"Compare", Ignored::compare, Dialect::meta, "release as another owner"},
        Careless{"CompareClassic", Ignored::compare, Dialect::classic, "release as another owner"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(SelfTestOfMemcachedServers, GrantsBehindAProxyThatHonorsConditions) {
  testkit::MemcachedServer server;
  server.start();
  for (const auto dialect : {Dialect::meta, Dialect::classic}) {
    const FaultProxy proxy(server.port(), careless(Ignored::nothing, dialect));
    const auto result = contest(memcached_url(proxy.port()));
    EXPECT_EQ(result.granted, 1);
    EXPECT_EQ(result.error, errc::timed_out) << result.error.message();
  }
}

TEST(SelfTestOfMemcachedServers, RefusesAServerThatAlwaysSaysYes) {
  SmallMemcached small(SmallMemcached::Honors::nothing);
  const ScriptedServer server([&](std::string& received) {
    ScriptedAnswer all;
    for (auto command = take_command(received); !command.line.empty();
         command = take_command(received)) {
      all.bytes += small.answer(command);
    }
    return all;
  });
  expect_refused(memcached_url(server.port()), "acquire as another owner");
}

/// Each script call finds keys that no other call has.
std::vector<Piece> with_new_keys(std::string& received, int& calls, std::string_view bytes) {
  received += bytes;
  std::string all;
  for (auto words = take_words(received); !words.empty(); words = take_words(received)) {
    const bool is_call = words[0] == "EVALSHA" || words[0] == "EVAL";
    const auto keys = is_call ? std::stoul(words[2]) : 0;
    if (keys != 0) ++calls;
    for (std::size_t i = 3; i < 3 + keys; ++i) words[i] += fmt::format("#{}", calls);
    all += command_of(words);
  }
  return {{std::move(all), Verdict::forward}};
}

TEST(SelfTestOfRedis, RefusesAServerWhoseScriptsSeeNoKey) {
  testkit::RedisServer server;
  server.start();
  std::map<ConnectionId, std::string> received;
  int calls = 0;
  const FaultProxy proxy(server.port(),
                         [&](Direction direction, ConnectionId connection, std::string_view bytes) {
                           if (direction == Direction::to_server) {
                             return with_new_keys(received[connection], calls, bytes);
                           }
                           return std::vector<Piece>{{std::string(bytes), Verdict::forward}};
                         });
  expect_refused(redis_url(proxy.port()), "acquire as another owner");
}

/// Sends commands that only read to another server than the others.
class SplittingProxy {
 public:
  SplittingProxy() {
    for (auto* server : {&writer_, &reader_}) server->start();
    to_writer_ = testkit::TcpStream::connect(writer_.port());
    to_reader_ = testkit::TcpStream::connect(reader_.port());
  }

  std::string answer(const Words& words) {
    static const std::set<std::string> kReads{"GET", "MGET", "EXISTS", "TYPE", "PTTL"};
    const std::lock_guard lock(mutex_);
    if (words[0] == "SUBSCRIBE") {
      return "*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":1\r\n";
    }
    auto& server = kReads.contains(words[0]) ? to_reader_ : to_writer_;
    server->send(command_of(words));
    std::string reply;
    while (reply_length(reply) == 0) {
      const auto more = server->receive_some();
      if (more.empty()) return "-ERR no answer\r\n";
      reply += more;
    }
    return reply;
  }

 private:
  std::mutex mutex_;  ///< Each connection of the scripted server has its own thread.
  testkit::RedisServer writer_;
  testkit::RedisServer reader_;
  std::optional<testkit::TcpStream> to_writer_;
  std::optional<testkit::TcpStream> to_reader_;
};

TEST(SelfTestOfRedis, RefusesAProxyThatSplitsReadsFromWrites) {
  SplittingProxy proxy;
  const ScriptedServer server([&](std::string& received) {
    ScriptedAnswer all;
    for (auto words = take_words(received); !words.empty(); words = take_words(received)) {
      all.bytes += proxy.answer(words);
    }
    return all;
  });
  expect_refused(redis_url(server.port()), "read back");
}

// Scripts are judged by their answers alone: that server keeps nothing.
TEST(SelfTestOfRedis, RefusesAServerThatAlwaysGrants) {
  const ScriptedServer server([](std::string& received) {
    ScriptedAnswer all;
    for (auto words = take_words(received); !words.empty(); words = take_words(received)) {
      const bool is_call = (words[0] == "EVALSHA" || words[0] == "EVAL") && words.size() > 3;
      if (is_call) {
        all.bytes += "*3\r\n:1\r\n" + bulk("17") + bulk(words.back());
      } else if (words[0] == "INFO") {
        all.bytes += bulk("redis_version:7.0.15\r\nrun_id:0123\r\nrole:master\r\n");
      } else {
        all.bytes += words[0] == "CLIENT" || words[0] == "EVAL" ? ":1\r\n" : "+OK\r\n";
      }
    }
    return all;
  });
  expect_refused(redis_url(server.port()), "acquire as another owner");
}

}  // namespace
}  // namespace dlock::hostile

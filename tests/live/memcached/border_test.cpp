// SPDX-License-Identifier: Apache-2.0
//
// Where dlock and a Memcached server meet: other lists of servers, servers that do not serve, links
// that are slow, and an end while calls are under way.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "testkit/await.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/scripted_server.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What connecting came to: the code, and in `text` the words.
error_code connect_error(const std::string& url, std::string* text = nullptr) {
  try {
    auto locks = open_memcached(url);
    locks.connect();
  } catch (const LockError& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return {};
}

std::string list_of(std::initializer_list<std::uint16_t> ports, std::string_view rest = {}) {
  std::string list;
  for (const auto port : ports) {
    list += fmt::format("{}127.0.0.1:{}", list.empty() ? "memcached://" : ",", port);
  }
  return list.append(rest);
}

TEST(MemcachedLists, AnotherOrderOrAnotherListIsRefused) {
  MemcachedServer a;
  MemcachedServer b;
  MemcachedServer c;
  for (auto* server : {&a, &b, &c}) server->start();
  auto locks = open_memcached(list_of({a.port(), b.port()}));
  locks.connect();
  std::string text;
  for (const auto& other :
       {list_of({b.port(), a.port()}), list_of({a.port()}), list_of({a.port(), c.port()}),
        list_of({a.port(), b.port(), c.port()}), list_of({a.port(), b.port()}, "?server_list=blue"),
        list_of({a.port(), b.port()}, "?distribution=modula"),
        list_of({a.port(), b.port()}, "?distribution=ketama")}) {
    EXPECT_EQ(connect_error(other, &text), errc::config_unsafe) << other;
    EXPECT_THAT(text, AllOf(HasSubstr("of 2"), HasSubstr("server_list=LABEL"))) << other;
  }
  EXPECT_FALSE(connect_error(list_of({a.port(), b.port()}, "?distribution=sha256")));
  // Notes of refused clients on servers that they reached first do not disturb this list.
  auto held = locks.lock("x")->acquire();
  EXPECT_FALSE(held.release());
  // An operator changes the list: no client runs, and the notes are deleted.
  locks.close();
  for (auto* server : {&a, &b, &c}) delete_key(server->port(), "dlock:%list");
  EXPECT_FALSE(connect_error(list_of({b.port(), a.port()})));
}

TEST(MemcachedLists, DistributionsOfOneListExcludeEachOther) {
  MemcachedServer a;
  MemcachedServer b;
  for (auto* server : {&a, &b}) server->start();
  auto locks = open_memcached(list_of({a.port(), b.port()}, "?distribution=ketama"));
  locks.connect();
  EXPECT_THAT(locks.inspect().front().capabilities.value().notes,
              testing::Contains(HasSubstr("one of 2 servers by distribution=ketama")));
  EXPECT_FALSE(connect_error(list_of({a.port(), b.port()}, "?distribution=ketama")));
  std::string text;
  for (const auto* other : {"?distribution=ketama_weighted", "?distribution=modula", ""}) {
    EXPECT_EQ(connect_error(list_of({a.port(), b.port()}, other), &text), errc::config_unsafe);
    EXPECT_THAT(text, HasSubstr("distribution=ketama")) << other;
  }
}

TEST(MemcachedLists, DistributionsOfALoneServerAreAlike) {
  MemcachedServer server;
  server.start();
  auto locks = open_memcached(memcached_url(server.port()));
  locks.connect();
  EXPECT_FALSE(connect_error(memcached_url(server.port(), "?distribution=ketama")));
}

TEST(MemcachedLists, ALabelStandsForAddressesThatDiffer) {
  MemcachedServer a;
  MemcachedServer b;
  for (auto* server : {&a, &b}) server->start();
  const FaultProxy to_a(a.port());
  auto locks = open_memcached(list_of({a.port(), b.port()}, "?server_list=blue"));
  locks.connect();
  EXPECT_FALSE(connect_error(list_of({to_a.port(), b.port()}, "?server_list=blue")));
  EXPECT_EQ(connect_error(list_of({b.port(), to_a.port()}, "?server_list=blue")),
            errc::config_unsafe);
}

TEST(MemcachedLists, OneServerMayBeReachedByOtherAddresses) {
  MemcachedServer server;
  server.start();
  const FaultProxy proxy(server.port());
  EXPECT_FALSE(connect_error(memcached_url(server.port())));
  EXPECT_FALSE(connect_error(memcached_url(proxy.port())));
}

/// A server that says the same to everything, or as the script tells.
struct Refusal {
  const char* name;
  ScriptedServer::Script script;
  const char* words;
};

/// Answers each whole command by its first line.
template <class Answer>
ScriptedServer::Script commands(Answer answer) {
  return [answer](std::string& received) {
    ScriptedAnswer all;
    for (auto end = received.find("\r\n"); end != std::string::npos; end = received.find("\r\n")) {
      const auto line = received.substr(0, end);
      auto size = end + 2;
      if (line.rfind("add", 0) == 0 || line.rfind("cas", 0) == 0) {
        // add KEY FLAGS EXPTIME BYTES, and the bytes
        std::size_t at = 0;
        for (int word = 0; word < 4; ++word) at = line.find(' ', at) + 1;
        size += std::stoul(line.substr(at)) + 2;
        if (received.size() < size) break;
      }
      received.erase(0, size);
      all.bytes += answer(line);
    }
    return all;
  };
}

ScriptedServer::Script always(std::string bytes, bool hang_up) {
  return [bytes = std::move(bytes), hang_up](std::string& received) {
    received.clear();
    return ScriptedAnswer{bytes, {}, 0, hang_up};
  };
}

/// What a proxy does whose route leads to no server.
std::string null_route(const std::string& line) {
  if (line.rfind("stats", 0) == 0) {
    return "STAT pid 7\r\nSTAT uptime 100\r\nSTAT time 1700000000\r\nSTAT version "
           "1.6.18\r\nEND\r\n";
  }
  if (line.rfind("get", 0) == 0) return "END\r\n";
  if (line.rfind("incr", 0) == 0) return "NOT_FOUND\r\n";
  return "NOT_STORED\r\n";
}

std::string stores_nothing(const std::string& line) {
  const auto answer = null_route(line);
  return answer == "NOT_STORED\r\n" ? "STORED\r\n" : answer;
}

/// One canary for all, and else as it should be.
std::string no_version(const std::string& line) {
  if (line.rfind("stats", 0) == 0) return "STAT pid 7\r\nSTAT version \r\nEND\r\n";
  if (line.rfind("gets dlock:%canary", 0) == 0) {
    return "VALUE dlock:%canary 0 1 1\r\nx\r\nEND\r\n";
  }
  return "ERROR\r\n";
}

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }
class MemcachedRefusals : public testing::TestWithParam<Refusal> {};

// None of these is the last word: the server may serve a moment later. And nobody is asked more
// than about once a second meanwhile.
TEST_P(MemcachedRefusals, IsUnavailableWithItsCauseAndAskedSeldom) {
  const ScriptedServer server(GetParam().script);
  auto locks =
      open_memcached(memcached_url(server.port(), "?connect_timeout=3s&request_timeout=500ms"));
  Diagnostics diagnostics;
  error_code ec;
  const auto start = Clock::now();
  (void)locks.lock("x")->acquire({.wait = 6s, .diagnostics = &diagnostics}, {}, ec);
  const auto took = std::chrono::duration<double>(Clock::now() - start).count();
  EXPECT_EQ(ec, errc::unavailable) << ec.message() << ": " << diagnostics.server_text;
  EXPECT_THAT(ec.message() + diagnostics.server_text, HasSubstr(GetParam().words));
  EXPECT_LE(static_cast<double>(server.connections()), 7 + took / 2) << "in " << took << " s";
}

const Refusal kRefusals[] = {
    {"NoPlaces", always("ERROR Too many open connections\r\n", true), "takes no more connections"},
    {"ProxyWithoutServers", always("SERVER_ERROR no available hosts\r\n", false), "available"},
    {"ProxyWithoutServersHangsUp", always("SERVER_ERROR Connection refused\r\n", true), "refused"},
    {"HangsUp", always("", true), "disconnected"},
    {"Error", always("ERROR\r\n", false), "127.0.0.1"},
    {"EmptyVersion", commands(&no_version), "version"},
    {"NullRoute", commands(&null_route), "not there"},
    {"StoresNothing", commands(&stores_nothing), "not there"},
};

INSTANTIATE_TEST_SUITE_P(All, MemcachedRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& tested) { return std::string(tested.param.name); });

// 1.4 s for each round trip.
TEST(MemcachedSlowLink, ConnectsInTime) {
  MemcachedServer server;
  server.start();
  FaultProxy proxy(server.port());
  proxy.delay(Direction::to_server, 700ms);
  proxy.delay(Direction::to_client, 700ms);
  auto locks = open_memcached(memcached_url(proxy.port()));
  const auto start = Clock::now();
  EXPECT_NO_THROW(locks.connect());
  const auto took = std::chrono::duration<double>(Clock::now() - start).count();
  EXPECT_LT(took, 15.0);
  RecordProperty("seconds", std::to_string(took));
  EXPECT_EQ(proxy.stats().connections, 1U) << "one connection, made once";
}

TEST(MemcachedSlowLink, OneOfTwoServersIsWaitedFor) {
  MemcachedServer fast;
  MemcachedServer slow;
  for (auto* server : {&fast, &slow}) server->start();
  FaultProxy proxy(slow.port());
  proxy.delay(Direction::to_server, 300ms);
  proxy.delay(Direction::to_client, 300ms);
  auto warnings = std::make_shared<Warnings>();
  auto locks = open_memcached(list_of({fast.port(), proxy.port()}), warnings);
  EXPECT_NO_THROW(locks.connect());
  EXPECT_EQ(warnings->count("unavailable until"), 0);
}

class MemcachedClose : public MemcachedTest {};

// Whoever asks when the end comes is told so, at once: not when the silent server's time is over.
TEST_F(MemcachedClose, CallsUnderWayAreToldThatItIsClosed) {
  auto locks = open_memcached(url("?request_timeout=20s&release_timeout=1s"));
  auto held = locks.lock("x")->acquire();
  const auto token = held.token();
  EXPECT_FALSE(held.release());
  server_.pause();
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const LockError& error) {
      return error.code();
    }
    return error_code{};
  };
  std::atomic<int> asking{0};
  auto status = std::async(std::launch::async, [&] {
    ++asking;
    return code_of([&] { static_cast<void>(locks.status("x")); });
  });
  auto broken = std::async(std::launch::async, [&] {
    ++asking;
    return code_of([&] { locks.evict("x", token.value_or(1), {.at_once = true}); });
  });
  ASSERT_TRUE(eventually(patience(), [&] { return asking == 2; }));
  // They are under way once nothing else is left for the two threads to do.
  ASSERT_EQ(status.wait_for(200ms), std::future_status::timeout);
  const auto start = Clock::now();
  locks.close();
  EXPECT_EQ(status.get(), errc::closed);
  EXPECT_EQ(broken.get(), errc::closed);
  EXPECT_LT(Clock::now() - start, 10s);
  server_.resume();
}

}  // namespace
}  // namespace dlock::testkit

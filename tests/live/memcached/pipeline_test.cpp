// SPDX-License-Identifier: Apache-2.0
//
// Many at once on the one connection to a server: they share its round trips, nobody's answer is
// taken for another's, and who has little time does not break off the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "backends/memcached/error.hpp"
#include "backends/memcached/wire/session.hpp"
#include "backends/memcached/wire/text_client.hpp"
#include "core/loop/real_env.hpp"
#include "dlock/async.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/scripted_server.hpp"
#include "tests/live/memcached/classic.hpp"
#include "tests/live/memcached/support.hpp"
#include "tests/support/acquired.hpp"

namespace dlock::testkit {
namespace {

class MemcachedPipeline : public MemcachedTest {};

TEST_F(MemcachedPipeline, ManyAcquiresShareTheirRoundTrips) {
  constexpr int kLocks = 200;
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port()));
  locks.connect();
  EXPECT_FALSE(locks.lock("first")->acquire().release());
  proxy.delay(Direction::to_client, 50ms);
  Acquired acquired;
  const auto turns = proxy.stats().turns;
  for (int i = 0; i < kLocks; ++i) {
    locks.lock(fmt::format("many/{}", i))->async_acquire({.wait = 20s}, acquired.one());
  }
  ASSERT_TRUE(eventually(patience(), [&] { return acquired.ended() == kLocks; }));
  EXPECT_EQ(acquired.failed(), 0);
  // Three each, one after the other they were 600.
  EXPECT_LT(proxy.stats().turns - turns, 60U);
  EXPECT_EQ(proxy.stats().connections, 1U);
  proxy.delay(Direction::to_client, 0ms);
}

// More than go on at once: the others follow.
TEST_F(MemcachedPipeline, AThousandAreServedAndExcludeEachOther) {
  constexpr int kLocks = 1000;
  auto locks = open_memcached(url());
  auto others = open_memcached(url());
  Acquired ours;
  Acquired theirs;
  for (int i = 0; i < kLocks; ++i) {
    const auto name = fmt::format("many/{}", i);
    locks.lock(name)->async_acquire({.wait = 0s}, ours.one());
    others.lock(name)->async_acquire({.wait = 0s}, theirs.one());
  }
  ASSERT_TRUE(eventually(patience(), [&] { return ours.ended() + theirs.ended() == 2 * kLocks; }));
  EXPECT_EQ(ours.held().size() + theirs.held().size(), static_cast<std::size_t>(kLocks));
  for (auto* held : {&ours.held(), &theirs.held()}) {
    for (auto& lock : *held) EXPECT_FALSE(lock.release());
  }
  std::string all = "get";
  for (int i = 0; i < kLocks; ++i) all += fmt::format(" dlock:many/{}", i);
  EXPECT_EQ(talk(port(), all, "END\r\n"), "END\r\n");
}

// On a link of which one connection went silent the next one is made in time for the renewal.
TEST_F(MemcachedPipeline, ASilentConnectionIsGivenUpBeforeTheLease) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=3s"));
  std::vector<LockHandle> held;
  for (int i = 0; i < 20; ++i) held.push_back(locks.lock(fmt::format("n/{}", i))->acquire());
  const auto connections = proxy.connections();
  ASSERT_EQ(connections.size(), 1U);
  proxy.hold(connections.front(), Direction::to_client, true);
  const auto renewed = stat(port(), "cas_hits");
  const auto all_thrice = [&] { return stat(port(), "cas_hits") >= renewed + 60; };
  EXPECT_TRUE(eventually(patience(), all_thrice));
  for (const auto& lock : held) EXPECT_EQ(lock.state(), HandleState::held) << lock.name();
  EXPECT_EQ(proxy.stats().connections, 2U);
}

/// On a loop of its own until it has ended.
void run(const std::function<boost::asio::awaitable<void>(core::RealEnv&)>& work) {
  core::RealEnv env;
  const auto all = [&]() -> boost::asio::awaitable<void> {
    co_await work(env);
    env.context().stop();
  };
  boost::asio::co_spawn(env.executor(), all(), boost::asio::detached);
  env.context().run();
}

// The first is written at once, the others in one piece when the loop comes round; by then it has
// broken, and the server knows nothing of them.
TEST(MemcachedConnection, WhatWasNotWrittenWhenItBrokeWasSurelyNotDone) {
  ScriptedServer server([](std::string&) { return ScriptedAnswer{}; });
  std::vector<memcached::Outcome> outcomes;
  run([&](core::RealEnv& env) -> boost::asio::awaitable<void> {
    memcached::TextClient client(env, {"127.0.0.1", server.port()}, 0, true);
    const auto until = env.now() + 20s;
    const auto opened = co_await client.open(until);
    EXPECT_TRUE(opened.done()) << opened.failure.text;
    std::vector<boost::asio::awaitable<memcached::Answer>> asked;
    asked.push_back(client.add("a", "x", 10, until));
    co_await boost::asio::post(env.executor(), boost::asio::use_awaitable);  // it is written then
    for (const char* key : {"b", "c"}) asked.push_back(client.add(key, "x", 10, until));
    client.drop();
    for (auto& one : asked) {
      const auto answer = co_await std::move(one);
      outcomes.push_back(answer.outcome);
    }
  });
  using memcached::Outcome;
  EXPECT_EQ(outcomes, (std::vector{Outcome::unknown, Outcome::unavailable, Outcome::unavailable}));
}

/// Takes and gives back one lock again and again, each time by the end of the last.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(LockManager& locks, const std::string& name) : lock_(locks.lock(name)) {}

  void next() {
    lock_->async_acquire({.wait = 1s}, [self = shared_from_this()](error_code, LockHandle got) {
      ++self->ends;
      if (!got) return self->again();
      ++self->grants;
      self->held_ = std::move(got);
      async_release(self->held_, [self](error_code) { self->again(); });
    });
  }

  std::atomic<int> ends = 0;
  std::atomic<int> grants = 0;
  std::atomic<bool> stop = false;
  std::atomic<bool> is_over = false;

 private:
  void again() {
    if (stop) {
      is_over = true;
    } else {
      next();
    }
  }
  std::shared_ptr<DistributedLock> lock_;
  LockHandle held_;
};

// Stopped, killed, started anew, flushed, cut off, with hundreds under way: every call ends, nobody
// is forgotten, and once all is well all get their locks again.
TEST_F(MemcachedPipeline, EveryCallEndsWhateverBecomesOfTheServer) {
  FaultProxy proxy(port());
  auto locks = open_memcached(
      memcached_url(proxy.port(), "?lease=3s&request_timeout=300ms&connect_timeout=30s"));
  locks.connect();
  std::vector<std::shared_ptr<Loop>> loops;
  for (int i = 0; i < 400; ++i) {
    loops.push_back(std::make_shared<Loop>(locks, fmt::format("n/{}", i % 300)));
  }
  for (const auto& loop : loops) loop->next();
  const auto all_go_on = [&] {
    std::vector<int> before;
    for (const auto& loop : loops) before.push_back(loop->ends);
    return eventually(patience(), [&] {
      for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i]->ends <= before[i]) return false;
      }
      return true;
    });
  };
  server_.pause();
  EXPECT_TRUE(all_go_on()) << "while the server is stopped";
  server_.resume();
  proxy.drop_all();
  EXPECT_TRUE(all_go_on()) << "after the connections were reset";
  server_.kill9();
  EXPECT_TRUE(all_go_on()) << "while there is no server";
  server_.start();
  EXPECT_TRUE(all_go_on()) << "after it came back";
  talk(port(), "flush_all", "OK\r\n");
  proxy.swallow(Direction::to_client, true);
  EXPECT_TRUE(all_go_on()) << "while no answer comes";
  proxy.swallow(Direction::to_client, false);
  std::vector<int> before;
  for (const auto& loop : loops) before.push_back(loop->grants);
  EXPECT_TRUE(eventually(patience(), [&] {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (loops[i]->grants < before[i] + 2) return false;
    }
    return true;
  })) << "somebody gets no lock any more";
  for (const auto& loop : loops) loop->stop = true;
  EXPECT_TRUE(eventually(patience(), [&] {
    return std::all_of(loops.begin(), loops.end(),
                       [](const auto& loop) { return loop->is_over.load(); });
  }));
  const auto start = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - start, 10s);
}

// The end, with a thousand under way.
TEST_F(MemcachedPipeline, TheEndIsToldToAllWhoWait) {
  auto locks = open_memcached(url("?request_timeout=20s&release_timeout=1s"));
  locks.connect();
  EXPECT_FALSE(locks.lock("first")->acquire().release());
  server_.pause();
  Acquired acquired;
  for (int i = 0; i < 1000; ++i) {
    locks.lock(fmt::format("n/{}", i))->async_acquire({.wait = 60s}, acquired.one());
  }
  const auto start = Clock::now();
  locks.close();
  EXPECT_TRUE(eventually(within(10s), [&] { return acquired.ended() == 1000; }));
  EXPECT_EQ(acquired.failed(), 1000);
  EXPECT_LT(Clock::now() - start, 10s);
  server_.resume();
}

// It is heard, only too late for the first: his answer is read to its end when it comes, and the
// next one is the second's.
TEST(MemcachedConnection, WhoGivesUpLeavesItToTheOthersWhileTheServerIsHeard) {
  std::atomic<int> asked = 0;
  ScriptedServer server([&](std::string& received) {
    received.clear();
    ScriptedAnswer answer;
    answer.bytes = ++asked == 1 ? "VALUE a 0 1 1\r\nx\r\n" : "END\r\nVALUE b 0 1 2\r\ny\r\nEND\r\n";
    return answer;
  });
  run([&](core::RealEnv& env) -> boost::asio::awaitable<void> {
    memcached::TextClient client(env, {"127.0.0.1", server.port()}, 0, true);
    const auto opened = co_await client.open(env.now() + 20s);
    EXPECT_TRUE(opened.done()) << opened.failure.text;
    const std::vector<std::string> a{"a"};
    const std::vector<std::string> b{"b"};
    const auto first = co_await client.gets(a, env.now() + 100ms);
    EXPECT_EQ(first.answer.failure.error, make_error_code(memcached::Error::no_answer));
    EXPECT_TRUE(client.is_open()) << "broken off";
    const auto second = co_await client.gets(b, env.now() + 20s);
    EXPECT_TRUE(second.answer.done());
    EXPECT_EQ(second.items.count("b"), 1U);
    EXPECT_EQ(second.items.size(), 1U);
  });
}

// After a restart the server counts anew, and another's item may have the very number that was
// read.
TEST(MemcachedConnection, ANumberSaysNothingAfterARestart) {
  MemcachedServer server;
  server.start();
  run([&](core::RealEnv& env) -> boost::asio::awaitable<void> {
    memcached::Session::Settings settings;
    settings.server = {"127.0.0.1", server.port()};
    settings.canary_key = "canary";
    settings.list_exptime = 600;
    memcached::Session session(env, std::move(settings), [](const memcached::ServerInfo&) {});
    const auto until = [&] { return env.now() + 20s; };
    for (int i = 0; i < 9; ++i) co_await session.add(fmt::format("fill/{}", i), "x", 0, until());
    const auto added = co_await session.add("k", "ours", 0, until());
    EXPECT_TRUE(added.done()) << added.failure.text;
    const std::vector<std::string> keys{"k"};
    const auto read = co_await session.gets(keys, until());
    const auto* ours = read.get("k");
    if (ours == nullptr) co_return ADD_FAILURE() << "not stored";
    server.restart();
    const auto said = [&](const std::string& command, const char* enough) {
      return talk(server.port(), command, enough);
    };
    // Until it is at the number before.
    const auto wanted = fmt::format("c{}\r\n", ours->number.cas - 1);
    std::string last;
    for (int i = 0; i < 100 && last.find(wanted) == last.npos; ++i) {
      last = said(fmt::format("ms other/{} 1 c\r\nx", i), "\r\n");
    }
    EXPECT_NE(said("ms k 5 c\r\nother", "\r\n").find(fmt::format("c{}\r\n", ours->number.cas)),
              std::string::npos);
    // As another's procedure, which makes the next connection.
    const auto others = co_await session.gets(keys, until());
    EXPECT_TRUE(others.answer.done()) << others.answer.failure.text;
    const auto stored = co_await session.cas("k", "ours", 0, ours->number, until());
    EXPECT_EQ(stored.outcome, memcached::Outcome::exists);
    EXPECT_NE(said("get k", "END\r\n").find("other"), std::string::npos) << "overwritten";
    session.close();
  });
}

// An item for each request, and never an end: it is heard all the time, and nobody is served.
TEST(MemcachedConnection, AServerThatOwesTooManyAnswersIsAskedAnew) {
  ScriptedServer server([](std::string& received) {
    received.clear();
    ScriptedAnswer answer;
    answer.bytes = "VALUE a 0 1 1\r\nx\r\n";
    return answer;
  });
  int asked = 0;
  run([&](core::RealEnv& env) -> boost::asio::awaitable<void> {
    memcached::TextClient client(env, {"127.0.0.1", server.port()}, 0, true);
    const auto opened = co_await client.open(env.now() + 20s);
    EXPECT_TRUE(opened.done()) << opened.failure.text;
    const std::vector<std::string> keys{"a"};
    while (client.is_open() && asked < 200) {
      ++asked;
      const auto found = co_await client.gets(keys, env.now() + 20ms);
      EXPECT_EQ(found.answer.outcome, memcached::Outcome::unknown);
    }
    EXPECT_FALSE(client.is_open());
  });
  EXPECT_LE(asked, 64);
}

class MemcachedDialects : public MemcachedTest, public testing::WithParamInterface<bool> {
 protected:
  static LockManager open(const std::string& url) {
    return GetParam() ? open_memcached(url) : open_classic(url);
  }
};

// Their requests go on, and their answers are nobody else's: classic ones have no tag to tell by.
TEST_P(MemcachedDialects, AnswersToThoseWhoHaveLeftAreNobodyElses) {
  FaultProxy proxy(port());
  auto locks = open(memcached_url(proxy.port()));
  locks.connect();
  EXPECT_FALSE(locks.lock("first")->acquire().release());
  proxy.delay(Direction::to_client, 150ms);
  std::atomic<bool> stop = false;
  std::atomic<int> gave_up = 0;
  std::vector<std::jthread> impatient;
  for (int t = 0; t < 3; ++t) {
    impatient.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        error_code ec;
        const auto lock = locks.lock(fmt::format("short/{}/{}", t, i));
        std::stop_source patience;
        const std::jthread impatience([&patience] {
          std::this_thread::sleep_for(40ms);
          patience.request_stop();
        });
        const auto got = lock->acquire({.wait = 20s}, patience.get_token(), ec);
        if (ec) ++gave_up;
      }
    });
  }
  std::map<std::string, std::uint64_t> last;
  for (int i = 0; i < 8; ++i) {
    const auto name = fmt::format("long/{}", i % 2);
    error_code ec;
    auto held = locks.lock(name)->acquire({.wait = 20s}, {}, ec);
    ASSERT_FALSE(ec) << ec.message();
    const auto token = held.token().value_or(0);
    EXPECT_GT(token, last[name]) << "another counter's answer";
    last[name] = token;
    EXPECT_TRUE(has_key(port(), "dlock:" + name));
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(has_key(port(), "dlock:" + name));
  }
  stop = true;
  impatient.clear();
  EXPECT_GT(gave_up, 5);
  EXPECT_EQ(proxy.stats().connections, 1U) << "somebody broke it off";
  proxy.delay(Direction::to_client, 0ms);
}

// All find their way on the next one.
TEST_P(MemcachedDialects, AConnectionThatBreaksUnderManyLeavesNothingBehind) {
  constexpr int kLocks = 60;
  FaultProxy proxy(port());
  auto locks = open(memcached_url(proxy.port(), "?lease=3s"));
  EXPECT_FALSE(locks.lock("first")->acquire().release());
  Acquired acquired;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kLocks; ++i) {
      locks.lock(fmt::format("many/{}/{}", round, i))->async_acquire({.wait = 20s}, acquired.one());
    }
    proxy.reset_after(Direction::to_client, 700);
  }
  ASSERT_TRUE(eventually(patience(), [&] { return acquired.ended() == 3 * kLocks; }));
  EXPECT_EQ(acquired.failed(), 0);
  EXPECT_GE(proxy.stats().connections, 2U);
  for (auto& lock : acquired.held()) EXPECT_FALSE(lock.release());
  std::string all = "get";
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kLocks; ++i) all += fmt::format(" dlock:many/{}/{}", round, i);
  }
  EXPECT_TRUE(eventually(within(8s), [&] { return talk(port(), all, "END\r\n") == "END\r\n"; }));
}

INSTANTIATE_TEST_SUITE_P(All, MemcachedDialects, testing::Bool(),
                         [](const auto& row) { return row.param ? "Meta" : "Classic"; });

}  // namespace
}  // namespace dlock::testkit

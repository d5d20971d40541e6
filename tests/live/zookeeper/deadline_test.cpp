// SPDX-License-Identifier: Apache-2.0
//
// Three servers, and a holder whose own server can no longer reach the others: it goes on answering
// reads and pings, so only the deadline rule tells the holder in time. Lost must be told before the
// rival is granted, each time.
//
// DLOCK_REPEAT sets how often each fault is played (default 10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "testkit/process.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

constexpr auto kTick = 500ms;
constexpr auto kSession = 2000ms;

int repeats() {
  const char* given = std::getenv("DLOCK_REPEAT");
  return given == nullptr ? 10 : std::atoi(given);
}

class ZooKeeperDeadline : public testing::Test {
 protected:
  void SetUp() override { ensemble_.start(); }

  static std::string url(std::uint16_t port) { return url_of({port}, "/app?session_timeout=2s"); }
  LockManager at(std::size_t server) {
    return open_zookeeper(url(ensemble_.server(server).port()));
  }

  /// Once all servers are in touch. Empty: they do not get there.
  std::optional<std::size_t> leader_of_all() {
    if (!ensemble_.wait_until_whole(patience())) return {};
    return ensemble_.leader();
  }

  static bool wait_for_heartbeats(const ZooKeeperFrames& frames, std::uint64_t count,
                                  Deadline deadline = patience()) {
    const auto before = frames.replies(opcode::multi);
    return eventually(deadline, [&] { return frames.replies(opcode::multi) >= before + count; });
  }
  /// When the newest heartbeat was answered.
  static Clock::time_point last_heartbeat(const ZooKeeperFrames& frames) {
    Clock::time_point when{};
    for (const auto& frame : frames.log()) {
      if (frame.kind == FrameKind::reply && frame.opcode == opcode::multi) when = frame.at;
    }
    return when;
  }
  /// When the process was told that it lost the lock.
  static TimePoint told_lost(Process& process) {
    while (const auto line = process.read_line(within(1s))) {
      if (line->starts_with("state lost")) {
        return TimePoint(Duration(std::stoll(line->substr(line->rfind(' ') + 1))));
      }
    }
    ADD_FAILURE() << "not told at all";
    return kNever;
  }
  /// The smallest time by which the loss was told before the rival's grant.
  struct Closest {
    void add(Duration ahead) { least = std::min(least, ahead); }
    ~Closest() {
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(least).count();
      std::cout << "closest: told " << ms << " ms before the rival's grant\n";
    }
    Duration least = 1h;
  };
  static void expect_told_before(TimePoint granted, StateLog& log, Closest& closest, int round) {
    EXPECT_TRUE(log.wait_for(HandleState::lost, within(0ms))) << "not told at all";
    EXPECT_GT(granted, log.entries().back().when) << "round " << round;
    closest.add(granted - log.entries().back().when);
  }
  /// Acquires as soon as it can, tells when, and gives back.
  static std::future<TimePoint> rival_of(LockManager& locks, const std::string& name) {
    return std::async(std::launch::async, [lock = locks.lock(name)] {
      auto held = lock->acquire({.wait = 60s});
      const auto when = BoottimeClock::now();
      held.release();
      return when;
    });
  }

  ZooKeeperEnsemble ensemble_{{.tick = kTick, .sync_limit = 6}};
};

// (a) The holder's process stands still for 0.6 T, sends one heartbeat, and its server is cut from
// its leader at that moment: the leader has not heard of the session since before the pause.
TEST_F(ZooKeeperDeadline, FollowerCutFromItsLeaderAfterALongSilence) {
  Closest closest;
  int void_rounds = 0;
  for (int i = 0; i < repeats(); ++i) {
    const auto leader = leader_of_all();
    ASSERT_TRUE(leader.has_value());
    const auto followers = ensemble_.followers();
    ZooKeeperFrames frames;
    FaultProxy proxy(ensemble_.server(followers[0]).port(), frames.filter());
    auto rival = at(followers[1]);
    rival.connect();
    ProcessOptions options;
    options.argv = {DLOCK_ZOOKEEPER_PROCESS, url(proxy.port()), "job"};
    Process holder(std::move(options));
    ASSERT_THAT(holder.read_line(patience()).value_or(""), testing::HasSubstr("held"));

    ASSERT_TRUE(wait_for_heartbeats(frames, 3));
    holder.pause();
    auto granted = rival_of(rival, "job");
    // The silence is the fault itself, not a wait for something.
    std::this_thread::sleep_until(last_heartbeat(frames) + kSession * 6 / 10);
    frames.clear();
    holder.resume();
    // A slow machine wakes it too late for a heartbeat: lost, rightly, and another round.
    const bool in_time = wait_for_heartbeats(frames, 1, within(kSession));
    if (in_time) {
      ensemble_.cut(followers[0], *leader);
    } else {
      ASSERT_LT(++void_rounds, 3 * repeats());
      --i;
    }

    const auto when = granted.get();
    const auto told = told_lost(holder);
    EXPECT_GT(when, told) << "round " << i;
    if (in_time) closest.add(when - told);
    holder.kill_and_wait();
    ensemble_.heal();
  }
}

// As (a), but the process runs on: what it sends is held back on the way to its server.
TEST_F(ZooKeeperDeadline, FollowerCutFromItsLeaderAfterHeldBackRequests) {
  std::mt19937 dice(3);
  Closest closest;
  for (int i = 0; i < repeats(); ++i) {
    const auto leader = leader_of_all();
    ASSERT_TRUE(leader.has_value());
    const auto followers = ensemble_.followers();
    ZooKeeperFrames frames;
    FaultProxy proxy(ensemble_.server(followers[0]).port(), frames.filter());
    auto rival = at(followers[1]);
    rival.connect();
    auto holder = open_zookeeper(url(proxy.port()));
    auto held = holder.lock("job")->acquire();
    StateLog log;
    log.record(held);
    ASSERT_TRUE(wait_for_heartbeats(frames, 3));
    auto granted = rival_of(rival, "job");
    proxy.hold(Direction::to_server, true);
    std::this_thread::sleep_for(kSession * 6 / 10 - std::chrono::milliseconds(dice() % 200));
    proxy.hold(Direction::to_server, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 40));
    ensemble_.cut(followers[0], *leader);
    expect_told_before(granted.get(), log, closest, i);
    ensemble_.heal();
  }
}

// (b) The holder's server is the leader; the two others elect another and go on.
TEST_F(ZooKeeperDeadline, LeaderCutFromBothFollowers) {
  std::mt19937 dice(2);
  Closest closest;
  for (int i = 0; i < repeats(); ++i) {
    const auto leader = leader_of_all();
    ASSERT_TRUE(leader.has_value());
    const auto followers = ensemble_.followers();
    auto holder = at(*leader);
    auto rival = open_zookeeper(
        url_of({ensemble_.server(followers[0]).port(), ensemble_.server(followers[1]).port()},
               "/app?session_timeout=2s&connect_timeout=60s"));
    rival.connect();
    auto held = holder.lock("job")->acquire();
    StateLog log;
    log.record(held);
    std::this_thread::sleep_for(kSession / 2 + std::chrono::milliseconds(dice() % 500));
    auto granted = rival_of(rival, "job");
    ensemble_.isolate(*leader);
    expect_told_before(granted.get(), log, closest, i);
    ensemble_.heal();
  }
}

}  // namespace
}  // namespace dlock::testkit

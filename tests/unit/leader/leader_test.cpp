// SPDX-License-Identifier: Apache-2.0
//
// Leader: standing, leading, resigning; the order of each end.
#include "dlock/leader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "tests/unit/leader/support.hpp"

namespace dlock::leader_tests {
namespace {

using ::testing::ElementsAre;

TEST(Leader, WhenItsWorkReturnsItHasResigned) {
  testing::Store store;
  auto locks = store.open(quiet());
  Diary diary;
  std::optional<std::uint64_t> token;
  bool led = false;
  Leader leader(
      locks, "l",
      [&](const std::stop_token&) {
        led = leader.is_leader();
        token = leader.token();
      },
      diary.options());
  EXPECT_FALSE(leader.is_leader());
  leader.campaign();
  EXPECT_FALSE(leader.wait());
  EXPECT_TRUE(led);
  EXPECT_EQ(token, 1U);
  EXPECT_FALSE(leader.is_leader());
  EXPECT_FALSE(leader.token());
  EXPECT_FALSE(store.held("l"));
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::elected, Kind::resigned));
  leader.campaign();
  EXPECT_FALSE(leader.wait());
  EXPECT_EQ(token, 2U) << "it may stand again";
}

TEST(Leader, AskedToItStandsAgainAfterItsWork) {
  testing::Store store;
  auto locks = store.open(quiet());
  Diary diary;
  Leader leader(
      locks, "l", [](const std::stop_token&) {}, diary.options(true));
  leader.campaign();
  EXPECT_TRUE(diary.reaches(Kind::elected, 3));
  leader.resign();
  EXPECT_FALSE(store.held("l"));
}

TEST(Leader, ResigningStopsTheWorkThenWaitsThenGivesTheLockBack) {
  testing::Store store(kShort);
  auto locks = store.open(quiet());
  std::atomic<bool> may_end = false;
  std::atomic<bool> has_stopped = false;
  Diary diary;
  Leader leader(
      locks, "l",
      [&](const std::stop_token& stop) {
        until_stopped(stop);
        has_stopped = true;
        eventually(patience(), [&] { return may_end.load(); });
      },
      diary.options());
  leader.campaign();
  ASSERT_TRUE(diary.reaches(Kind::elected));
  std::jthread resigning([&] { leader.resign(); });
  ASSERT_TRUE(eventually(patience(), [&] { return has_stopped.load(); }));
  const auto past_its_lease = testkit::within(1500ms);
  EXPECT_FALSE(eventually(past_its_lease, [&] { return !store.held("l"); }))
      << "it is renewed while the work ends";
  may_end = true;
  resigning.join();
  EXPECT_FALSE(store.held("l"));
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::elected, Kind::resigned));
}

TEST(Leader, WithoutWorkItLeadsUntilItResigns) {
  testing::Store store;
  auto locks = store.open(quiet());
  Diary diary;
  Leader leader(locks, "l", {}, diary.options());
  std::stop_source shutdown;
  leader.campaign(shutdown.get_token());
  EXPECT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
  shutdown.request_stop();
  EXPECT_FALSE(leader.wait());
  EXPECT_FALSE(leader.is_leader());
  EXPECT_FALSE(store.held("l"));
}

TEST(Leader, InsideItsWorkToResignOnlyAsks) {
  testing::Store store;
  auto locks = store.open(quiet());
  bool asked = false;
  Leader leader(locks, "l",
                [&](const std::stop_token& stop) {
                  leader.resign();
                  asked = stop.stop_requested();
                },
                {.stand_again = true});
  leader.campaign();
  leader.wait();
  EXPECT_TRUE(asked);
  EXPECT_FALSE(store.held("l"));
}

TEST(Leader, WorkThatThrowsIsToldAndTheLeaderStandsAgain) {
  testing::Store store;
  auto locks = store.open(quiet());
  std::atomic<int> terms = 0;
  Diary diary;
  Leader leader(
      locks, "l",
      [&](const std::stop_token&) {
        if (++terms < 3) throw std::runtime_error("no disk");
      },
      diary.options());
  leader.campaign();
  EXPECT_FALSE(leader.wait());
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::elected, Kind::work_failed, Kind::elected,
                                         Kind::work_failed, Kind::elected, Kind::resigned));
  EXPECT_EQ(diary.events().at(1).text, "no disk");
}

TEST(Leader, ClosingTheManagerStopsTheWorkBeforeTheLockGoes) {
  testing::Store store;
  auto locks = store.open(quiet());
  std::atomic<bool> held_at_end = false;
  Diary diary;
  Leader leader(
      locks, "l",
      [&](const std::stop_token& stop) {
        until_stopped(stop);
        held_at_end = store.held("l").has_value();
      },
      diary.options(true));
  leader.campaign();
  ASSERT_TRUE(diary.reaches(Kind::elected));
  locks.close();
  EXPECT_TRUE(held_at_end);
  EXPECT_FALSE(store.held("l"));
  EXPECT_EQ(leader.wait(), errc::closed);
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::elected, Kind::lost, Kind::gave_up));
}

TEST(Leader, AForkedChildLeadsNothing) {
  testing::Store store;
  auto locks = store.open(quiet());
  Diary diary;
  auto leader = std::make_unique<Leader>(locks, "l", Leader::Work(), diary.options());
  leader->campaign();
  ASSERT_TRUE(diary.reaches(Kind::elected));
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = leader->is_leader() ? 1 : 0;
    if (leader->token()) wrong = 2;
    leader->resign();
    if (leader->wait() != errc::closed) wrong = 3;
    leader.reset();
    ::_exit(wrong);
  }
  int raw = 0;
  ASSERT_EQ(::waitpid(child, &raw, 0), child);
  EXPECT_TRUE(WIFEXITED(raw));
  EXPECT_EQ(WEXITSTATUS(raw), 0);
  EXPECT_TRUE(leader->is_leader());
}

/// What comes when, on standard error: exit() while the work goes on.
[[noreturn]] void exit_while_leading(bool inside) {
  static testing::Store store;
  static auto locks = store.open(quiet());
  static Diary diary;
  static Leader leader(
      locks, "l",
      [inside](const std::stop_token& stop) {
        if (inside) std::exit(7);
        until_stopped(stop);
        std::fputs(store.held("l") ? "stopped while held, " : "stopped too late, ", stderr);
      },
      diary.options());
  leader.campaign();
  if (inside) leader.wait();
  diary.reaches(Kind::elected);
  std::atexit([] { std::fputs("", stderr); });
  std::exit(7);
}

TEST(LeaderDeathTest, ExitStopsTheWorkThenGivesTheLockBack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_while_leading(false), ::testing::ExitedWithCode(7), "stopped while held, ");
}

TEST(LeaderDeathTest, ExitInsideTheWorkEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_while_leading(true), ::testing::ExitedWithCode(7), "");
}

TEST(Leader, WhoLeadsIsSeenByAllAndObserversAreTold) {
  testing::Store store;
  auto here = store.open(quiet());
  auto there = store.open(quiet());
  Diary diary;
  Leader leader(here, "l", {}, diary.options());
  Leader candidate(there, "l", {}, diary.options());
  Leader onlooker(there, "l", {}, diary.options());
  std::mutex mutex;
  std::vector<std::string> told;
  onlooker.on_leader_changed([&](const std::optional<Owner>& who) {
    const std::lock_guard lock(mutex);
    told.push_back(who ? who->id : "");
  });
  const auto seen = [&](std::size_t count) {
    return eventually(patience(), [&] {
      const std::lock_guard lock(mutex);
      return told.size() >= count;
    });
  };
  ASSERT_TRUE(seen(1));
  EXPECT_FALSE(onlooker.who());
  leader.campaign();
  ASSERT_TRUE(seen(2));
  EXPECT_EQ(onlooker.who()->pid, ::getpid());
  candidate.campaign();
  EXPECT_TRUE(eventually(patience(), [&] { return store.waiting("l") == 1; }));
  leader.resign();
  ASSERT_TRUE(seen(3));
  EXPECT_TRUE(eventually(patience(), [&] { return candidate.is_leader(); }));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told.at(0), "");
  EXPECT_NE(told.at(1), told.at(2));
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(Leader, EachHasOneThreadOfItsOwnAndNoMore) {
  testing::Store store;
  auto locks = store.open(quiet());
  locks.connect();
  std::vector<std::unique_ptr<Leader>> leaders;
  const auto before = threads_of_this_process();
  for (int i = 0; i < 12; ++i) {
    leaders.push_back(std::make_unique<Leader>(locks, "l/" + std::to_string(i), Leader::Work()));
    leaders.back()->campaign();
  }
  for (const auto& leader : leaders) {
    ASSERT_TRUE(eventually(patience(), [&] { return leader->is_leader(); }));
  }
  EXPECT_LE(threads_of_this_process(), before + 12 + 1) << "and one for all their deadlines";
}

}  // namespace
}  // namespace dlock::leader_tests

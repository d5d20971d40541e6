// SPDX-License-Identifier: Apache-2.0
//
// Leader on every store: one leads, loses, resigns, dies; then another does.
#include <atomic>
#include <csignal>
#include <memory>
#include <set>
#include <string>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class LeaderContract : public Contract {
 protected:
  static LeaderOptions quickly() {
    LeaderOptions options;
    options.times.retry = 10ms;
    return options;
  }
};
DLOCK_CONTRACT(LeaderContract);

TEST_P(LeaderContract, OneLeadsAndTheNextFollowsWhenItResigns) {
  auto here = open();
  auto there = open();
  Leader first(here, "l", {}, quickly());
  Leader second(there, "l", {}, quickly());
  EXPECT_FALSE(first.who());
  first.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return first.is_leader(); }));
  const auto token = first.token();
  const auto who = second.who();
  second.campaign();
  first.resign();
  EXPECT_FALSE(first.is_leader());
  ASSERT_TRUE(eventually(patience(), [&] { return second.is_leader(); }));
  EXPECT_GT(second.token().value_or(1), token.value_or(0));
  ASSERT_TRUE(who);
  EXPECT_NE(who->id, second.who()->id) << "the same process is another owner each time";
  second.resign();
  EXPECT_TRUE(becomes_free("l"));
}

// G20: not host and process name the owner.
TEST_P(LeaderContract, G20_EveryLeadHasAnOwnerOfItsOwn) {
  std::set<std::string> ids;
  auto locks = open();
  Leader leader(locks, "l", {}, quickly());
  for (int i = 0; i < 3; ++i) {
    leader.campaign();
    ASSERT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
    const auto who = leader.who();
    ASSERT_TRUE(who);
    EXPECT_GE(who->id.size(), 32U) << "128 bits, most of them random";
    ids.insert(who->id);
    leader.resign();
  }
  EXPECT_EQ(ids.size(), 3U);
}

TEST_P(LeaderContract, ALeadThatIsTakenAwayStopsTheWorkAndItStandsAgain) {
  auto locks = open();
  std::atomic<int> begun = 0;
  std::atomic<int> stopped = 0;
  Leader leader(
      locks, "l",
      [&](const std::stop_token& stop) {
        ++begun;
        eventually(patience(), [&] { return stop.stop_requested(); });
        ++stopped;
      },
      quickly());
  leader.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return begun == 1 && leader.is_leader(); }));
  const auto token = leader.token();
  harness().take_away(observer(), url(), "l");
  EXPECT_TRUE(eventually(patience(), [&] {
    return begun == 2 && leader.is_leader() && (!token || leader.token() != token);
  }));
  leader.resign();
  EXPECT_EQ(stopped, 2);
}

TEST_P(LeaderContract, CloseFreesNoLockWhoseWorkHasNotEnded) {
  auto locks = LockManager::open(
      url() + (url().find('?') == std::string::npos ? "?" : "&") + "release_timeout=100ms",
      open_options());
  std::atomic<bool> may_end = false;
  Leader leader(
      locks, "l",
      [&](const std::stop_token&) { eventually(patience(), [&] { return may_end.load(); }); },
      quickly());
  leader.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
  auto held = locks.lock("h")->acquire();
  const auto stop = held.stop_token();
  auto other = open();
  const auto closing = testkit::Clock::now();
  locks.close();
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_FALSE(leader.is_leader());
  for (const std::string name : {"l", "h"}) {
    const bool is_free = other.lock(name)->try_acquire().has_value();
    const std::chrono::milliseconds lease =
        capabilities().lease_scope == LeaseScope::none ? 60s : capabilities().lease;
    EXPECT_TRUE(!is_free || testkit::Clock::now() >= closing + lease / 2) << name;
  }
  may_end = true;
  leader.resign();
  EXPECT_EQ(held.release(), errc::lock_lost);
  for (const std::string name : {"l", "h"}) {
    const auto bound = harness().dead_holder_bound() + 10s;
    EXPECT_TRUE(other.lock(name)->acquire({.wait = bound})) << name;
  }
}

class LeaderProcessContract : public LeaderContract {};
DLOCK_CONTRACT_OF_PROCESSES(LeaderProcessContract);

TEST_P(LeaderProcessContract, AfterALeaderIsKilledACandidateLeads) {
  auto leading = process_peer("l");
  ASSERT_TRUE(leading->is_held() || leading->wait_held(patience()));
  auto locks = open();
  Leader candidate(locks, "l", {}, quickly());
  candidate.campaign();
  leading->process().kill_and_wait();
  const auto bound = within(harness().dead_holder_bound() + 10s);
  EXPECT_TRUE(eventually(bound, [&] { return candidate.is_leader(); }));
  candidate.resign();
}

}  // namespace
}  // namespace dlock::contract

// SPDX-License-Identifier: Apache-2.0
//
// Observers of a leader who hear of each change from the store: their own looks would come too late
// for these tests to pass.
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

/// What one observer was told: the ids of who led, empty for nobody.
class Told {
 public:
  Leader::Observer observer() {
    return [this](const std::optional<Owner>& who) {
      const std::lock_guard lock(mutex_);
      all_.push_back(who ? who->id : "");
    };
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  bool ends_with(const std::string& who) const {
    return eventually(patience(), [&] {
      const auto told = all();
      return !told.empty() && told.back() == who;
    });
  }
  /// Nothing is told twice.
  void expect_changes_only() const {
    const auto told = all();
    for (std::size_t i = 1; i < told.size(); ++i) EXPECT_NE(told[i - 1], told[i]) << i;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

class ObserversContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    if (!HasFatalFailure() && !harness().tells_holders()) GTEST_SKIP() << "it tells nobody";
  }
  static LeaderOptions seldom() {
    LeaderOptions options;
    options.times.retry = 10ms;
    options.observe_every = 1h;
    return options;
  }
  std::string id_of_leader() {
    const auto status = observer().status("l");
    return status.held ? status.owner.value_or(Owner{}).id : "";
  }
};
DLOCK_CONTRACT(ObserversContract);

TEST_P(ObserversContract, EachChangeIsToldByTheStoreInOrderAndOnce) {
  auto here = open();
  auto there = open();
  Told told;
  Leader onlooker(there, "l", {}, seldom());
  onlooker.on_leader_changed(told.observer());
  ASSERT_TRUE(told.ends_with(""));
  Leader first(here, "l", {}, seldom());
  Leader second(there, "l", {}, seldom());
  std::vector<std::string> expected{""};
  for (int round = 0; round < 3; ++round) {
    first.campaign();
    ASSERT_TRUE(eventually(patience(), [&] { return first.is_leader(); }));
    expected.push_back(id_of_leader());
    ASSERT_TRUE(told.ends_with(expected.back())) << "elected, round " << round;
    second.campaign();
    ASSERT_TRUE(waiters_become("l", 1));
    first.resign();
    ASSERT_TRUE(eventually(patience(), [&] { return second.is_leader(); }));
    expected.push_back(id_of_leader());
    ASSERT_TRUE(told.ends_with(expected.back())) << "the next one, round " << round;
    second.resign();
    expected.emplace_back();
    ASSERT_TRUE(told.ends_with("")) << "nobody, round " << round;
  }
  told.expect_changes_only();
  // Between two leaders nobody may have been seen.
  auto seen = told.all();
  std::erase(seen, "");
  std::erase(expected, "");
  EXPECT_EQ(seen, expected);
}

TEST_P(ObserversContract, ManyObserversOfOneNameAreAllToldAndThoseThatEndAreNot) {
  auto here = open();
  auto there = open();
  std::vector<std::unique_ptr<Told>> told;
  std::vector<std::unique_ptr<Leader>> onlookers;
  for (int i = 0; i < 5; ++i) {
    told.push_back(std::make_unique<Told>());
    onlookers.push_back(std::make_unique<Leader>(there, "l", Leader::Work(), seldom()));
    onlookers.back()->on_leader_changed(told.back()->observer());
  }
  for (const auto& one : told) ASSERT_TRUE(one->ends_with(""));
  onlookers.front().reset();
  Leader leader(here, "l", {}, seldom());
  leader.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
  const auto id = id_of_leader();
  for (std::size_t i = 1; i < told.size(); ++i) EXPECT_TRUE(told[i]->ends_with(id)) << i;
  EXPECT_EQ(told.front()->all().size(), 1U);
  leader.resign();
  for (std::size_t i = 1; i < told.size(); ++i) EXPECT_TRUE(told[i]->ends_with("")) << i;
}

}  // namespace
}  // namespace dlock::contract

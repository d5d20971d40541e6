// SPDX-License-Identifier: Apache-2.0
//
// Observers of a leader whose store does not answer: nothing is known, so nothing is told, nobody
// else waits for that, and they come back by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "dlock/error.hpp"
#include "dlock/leader.hpp"
#include "tests/live/surroundings/stores.hpp"

namespace dlock::testkit {
namespace {

std::vector<std::string> served_stores() {
  auto names = shared_stores();
  std::erase(names, "local");
  return names;
}

LeaderOptions looking_often() {
  LeaderOptions options;
  options.times.retry = 10ms;
  options.observe_every = 50ms;
  return options;
}

/// What an observer was told last, and how often it was.
struct Told {
  /// Has to outlive it.
  void listen_to(Leader& leader) {
    leader.on_leader_changed([this](const std::optional<Owner>& who) {
      somebody = who.has_value();
      ++times;
    });
  }
  bool becomes(bool leads) {
    return eventually(patience(), [&] { return times > 0 && somebody == leads; });
  }
  std::atomic<bool> somebody{false};
  std::atomic<int> times{0};
};

class ObserversOfServers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, ObserversOfServers, testing::ValuesIn(served_stores()),
                         [](const auto& one) { return one.param; });

TEST_P(ObserversOfServers, OneThatStandsStillTellsNothingAndKeepsNobodyWaiting) {
  SurroundedStore store(GetParam());
  auto here = LockManager::open(store.url(), quiet());
  auto there = LockManager::open(store.url(), quiet());
  auto elsewhere = LockManager::open("memory://observers", quiet());
  Told of_it;
  Told of_other;
  Leader leads(here, "a", {}, looking_often());
  Leader looks(there, "a", {}, looking_often());
  Leader other(elsewhere, "b", {}, looking_often());
  leads.campaign();
  of_it.listen_to(looks);
  of_other.listen_to(other);
  ASSERT_TRUE(of_it.becomes(true));
  ASSERT_TRUE(of_other.becomes(false));
  store.pause();
  const int before = of_it.times;
  EXPECT_THROW(looks.who(), LockError) << "who leads is not known";
  other.campaign();
  EXPECT_TRUE(of_other.becomes(true)) << "the observers of all have one thread";
  other.resign();
  EXPECT_TRUE(of_other.becomes(false));
  EXPECT_EQ(of_it.times, before) << "it was told what nobody knows";
  store.resume();
  leads.resign();
  EXPECT_TRUE(of_it.becomes(false));
  leads.campaign();
  EXPECT_TRUE(of_it.becomes(true));
}

TEST_P(ObserversOfServers, ALinkThatIsCutTellsNothingAndWhatChangedMeanwhileIsToldOnce) {
  SurroundedStore store(GetParam());
  FaultProxy link(store.port());
  auto here = LockManager::open(store.url(), quiet());
  auto there = LockManager::open(store.url_through(link), quiet());
  Told told;
  Leader leads(here, "a", {}, looking_often());
  Leader looks(there, "a", {}, looking_often());
  leads.campaign();
  told.listen_to(looks);
  ASSERT_TRUE(told.becomes(true));
  link.refuse(true);
  link.drop_all();
  EXPECT_THROW(looks.who(), LockError) << "who leads is not known";
  const int before = told.times;
  leads.resign();
  leads.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return leads.is_leader(); }));
  leads.resign();
  EXPECT_EQ(told.times, before) << "it was told what it cannot know";
  link.refuse(false);
  EXPECT_TRUE(told.becomes(false));
  EXPECT_EQ(told.times, before + 1) << "nobody leads: all that is left to tell";
  leads.campaign();
  EXPECT_TRUE(told.becomes(true)) << "its watch is set again";
}

}  // namespace
}  // namespace dlock::testkit

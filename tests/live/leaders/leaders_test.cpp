// SPDX-License-Identifier: Apache-2.0
//
// I9, on every store, by processes that are stopped and killed at random: at no moment do two of
// them say that they lead, and after each round one that can leads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dlock/clock.hpp"
#include "testkit/checkers/leaders.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/surroundings/stores.hpp"

namespace dlock::testkit {
namespace {

using checkers::Lead;

class Leaders : public testing::TestWithParam<std::string> {
 protected:
  struct Candidate {
    std::string name;
    std::unique_ptr<Process> process;
  };

  Candidate start() {
    const auto name = fmt::format("c{}", ++started_);
    names_.push_back(name);
    ProcessOptions options;
    const auto* const mutant = std::getenv("DLOCK_TEST_BINARY");
    options.argv = {mutant == nullptr ? DLOCK_CANDIDATE : mutant, store_.url(), journal(name)};
    options.stdout_to = ProcessOptions::Output::null;
    return {name, std::make_unique<Process>(std::move(options))};
  }
  std::string journal(const std::string& name) const { return (folder_ / name).string(); }

  /// Each term of a candidate, as its journal has it.
  std::vector<Lead> leads_of(const std::string& name) const {
    std::map<std::uint64_t, Lead> terms;
    std::ifstream in(journal(name));
    std::uint64_t token = 0;
    Duration::rep from = 0;
    Duration::rep until = 0;
    while (in >> token >> from >> until) {
      auto& lead = terms[token];
      lead = {name, token, TimePoint(Duration(from)), TimePoint(Duration(until))};
    }
    std::vector<Lead> all;
    for (const auto& [number, lead] : terms) all.push_back(lead);
    return all;
  }
  bool leads_after(const std::string& name, TimePoint when) const {
    const auto leads = leads_of(name);
    return std::any_of(leads.begin(), leads.end(),
                       [&](const Lead& lead) { return lead.until > when; });
  }
  bool somebody_leads_after(TimePoint when) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
      return leads_after(candidate.name, when);
    });
  }

  /// Kills and stops in turn.
  void trouble_one(int round) {
    // Mostly who leads: nothing happens to the others.
    const auto now = BoottimeClock::now();
    auto victim =
        std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
          return leads_after(candidate.name, now - std::chrono::milliseconds(300));
        });
    if (victim == candidates_.end() || (round % 2 == 1 && dice_() % 4 == 0)) {
      victim = candidates_.begin() + static_cast<std::ptrdiff_t>(dice_() % candidates_.size());
    }
    if (round % 2 == 0) {
      victim->process->kill_and_wait();
      *victim = start();
      return;
    }
    ASSERT_TRUE(victim->process->pause());
    const auto pause = std::chrono::milliseconds(100 + dice_() % 2500);
    // Whoever may take over meanwhile, or not: it is the pause that matters.
    eventually(within(pause), [&] {
      return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
        return other.name != victim->name && leads_after(other.name, now);
      });
    });
    ASSERT_TRUE(victim->process->resume());
  }

  std::vector<Lead> all_leads() const {
    std::vector<Lead> all;
    for (const auto& name : names_) {
      const auto leads = leads_of(name);
      all.insert(all.end(), leads.begin(), leads.end());
    }
    return all;
  }

  SurroundedStore store_{GetParam()};
  TempDir folder_{"dlock-leaders"};
  std::mt19937_64 dice_{std::random_device{}()};
  int started_ = 0;
  std::vector<std::string> names_;
  std::vector<Candidate> candidates_;
};
INSTANTIATE_TEST_SUITE_P(Stores, Leaders, testing::ValuesIn(shared_stores()),
                         [](const auto& one) { return one.param; });

TEST_P(Leaders, G27_NeverTwoAndAlwaysOneInTheEnd) {
  constexpr int kCandidates = 3;
  constexpr int kRounds = 10;
  for (int i = 0; i < kCandidates; ++i) candidates_.push_back(start());
  ASSERT_TRUE(eventually(patience(), [&] { return somebody_leads_after(TimePoint{}); }));
  for (int round = 0; round < kRounds; ++round) {
    trouble_one(round);
    const auto healed = BoottimeClock::now();
    ASSERT_TRUE(eventually(patience(), [&] { return somebody_leads_after(healed); }))
        << "nobody leads after round " << round;
  }
  const auto leads = all_leads();
  for (const auto& violation : checkers::check_leaders(leads)) ADD_FAILURE() << violation.what;
  const auto terms = std::count_if(leads.begin(), leads.end(),
                                   [](const Lead& lead) { return lead.until > lead.from; });
  EXPECT_GE(terms, 3) << "the lead has hardly changed: nothing was tried";
}

}  // namespace
}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// A run as a text: what is read is what was written, and nothing else is.
#include "core/schedule/record.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

RunRecord full() {
  RunRecord run;
  run.outcome = RunRecord::Outcome::failed;
  run.tick = 3;
  run.started = 1s;
  run.at_most_until = 2s;
  run.at_least_until = 3s;
  run.ended = 4s;
  run.status = 7;
  run.token = 9'007'199'254'740'991;
  run.every = 60s;
  run.offset = 5s;
  run.early = 6s;
  run.owner = {"id-1", "web 1", 4711, "./report.sh --all", 4026531836};
  return run;
}

TEST(RunText, IsReadAsItWasWritten) {
  for (auto run : {full(), RunRecord{}}) {
    const auto text = to_text(run);
    const auto read = parse_run(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_text(*read), text);
    EXPECT_EQ(read->owner.host, run.owner.host);
    EXPECT_EQ(read->owner.pid, run.owner.pid);
    EXPECT_EQ(read->owner.pid_namespace, run.owner.pid_namespace);
    EXPECT_EQ(read->tick, run.tick);
    EXPECT_EQ(read->ended, run.ended);
    EXPECT_EQ(read->early, run.early);
  }
}

TEST(RunText, ARecordOfAnEarlierVersionHasNoEarlyTime) {
  auto text = to_text(full());
  text.erase(text.find("early "), std::string_view("early 6000\n").size());
  const auto read = parse_run(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->early, 0ms);
}

TEST(RunText, ANameWithALineInItEndsNoLine) {
  auto run = full();
  run.owner.app = "a\noutcome running";
  EXPECT_EQ(parse_run(to_text(run))->outcome, RunRecord::Outcome::failed);
}

TEST(RunText, TimesAndTicksReachTheYearTenThousand) {
  static constexpr std::int64_t kLatest = 253'402'300'800'000;
  const auto is_read = [](const auto& change) {
    auto run = full();
    change(run);
    return parse_run(to_text(run)).has_value();
  };
  EXPECT_TRUE(is_read([](RunRecord& run) { run.started = milliseconds(kLatest); }));
  EXPECT_FALSE(is_read([](RunRecord& run) { run.started = milliseconds(kLatest + 1); }));
  EXPECT_TRUE(is_read([](RunRecord& run) { run.ended = 0ms; }));
  EXPECT_FALSE(is_read([](RunRecord& run) { run.ended = -1ms; }));
  EXPECT_TRUE(is_read([](RunRecord& run) { run.tick = kLatest / 60'000; }));
  EXPECT_FALSE(is_read([](RunRecord& run) { run.tick = kLatest / 60'000 + 1; }));
  EXPECT_TRUE(is_read([](RunRecord& run) { run.tick = 0; }));
  EXPECT_FALSE(is_read([](RunRecord& run) { run.tick = -1; }));
  EXPECT_FALSE(is_read([](RunRecord& run) { run.every = 0ms; }));
}

TEST(RunText, WhatIsNoneIsRefused) {
  const auto text = to_text(full());
  EXPECT_FALSE(parse_run(""));
  EXPECT_FALSE(parse_run("something else"));
  EXPECT_FALSE(parse_run("dlock-run2\n" + text.substr(11)));
  EXPECT_EQ(newer_run("dlock-run2\n" + text.substr(11)),
            "the note of its last run has format 2; this program reads format 1; upgrade it");
  EXPECT_EQ(newer_run(text), "");
  EXPECT_FALSE(parse_run(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(parse_run("dlock-run1\n"));
  for (const auto* wrong :
       {"started -1\n", "started 9223372036854775807\n", "started x\n", "started 1 \n",
        "outcome sleeping\n", "tick -3\n", "tick 9223372036854775807\n"}) {
    const std::string line = wrong;
    auto changed = text;
    const auto at = changed.find(line.substr(0, line.find(' ') + 1));
    changed.replace(at, changed.find('\n', at) + 1 - at, line);
    EXPECT_FALSE(parse_run(changed)) << changed;
  }
}

}  // namespace
}  // namespace dlock::core

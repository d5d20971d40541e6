// SPDX-License-Identifier: Apache-2.0
//
// `dlock run --at-most-for`: cron on many hosts, one of which runs the command. With
// DLOCK_TEST_TICKS=200 the case of many processes is as long as that says.
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

testkit::Finished run_scheduled(const LocalStore& store, std::vector<std::string> words,
                                const std::string& command = "echo ran") {
  words.insert(words.begin(), {"run", "job"});
  words.insert(words.end(), {"--", "sh", "-c", command});
  return finish(dlock_on(store.url(), std::move(words)));
}

boost::json::object last_run(const LocalStore& store) {
  const auto status = status_of(store.url(), "job");
  const auto* last = status.if_contains("last_run");
  return last != nullptr && last->is_object() ? last->as_object() : boost::json::object{};
}

TEST(CliScheduled, WhoComesSecondInATickEndsAtOnce) {
  const LocalStore store;
  EXPECT_TRUE(status_of(store.url(), "job").at("last_run").is_null());
  const auto first =
      run_scheduled(store, {"--at-most-for", "10m", "--every", "7200h"}, "echo ran; exit 3");
  EXPECT_EQ(first.status.shell_status(), 3) << first.err;
  EXPECT_EQ(first.out, "ran\n");
  const auto second = run_scheduled(store, {"--at-most-for", "10m", "--every", "7200h"});
  EXPECT_EQ(second.status.shell_status(), 75);
  EXPECT_EQ(second.out, "");
  EXPECT_NE(second.err.find("this tick was run by"), std::string::npos) << second.err;
  EXPECT_EQ(run_scheduled(store, {"--at-most-for", "1s", "--every", "7200h", "-E", "0"})
                .status.shell_status(),
            0);
  const auto last = last_run(store);
  EXPECT_EQ(keys(last), "outcome status tick token started_ms ended_ms next_possible_ms owner");
  EXPECT_EQ(text(last, "outcome"), "failed");
  EXPECT_EQ(last.at("status"), boost::json::value(3));
  const auto shown = finish(dlock_on(store.url(), {"status", "job"})).out;
  EXPECT_NE(shown.find("failed (status 3), ended 20"), std::string::npos) << shown;
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

TEST(CliScheduled, AManualRunBeforeATickBelongsToThePreviousTickOrWithEarlyToTheNext) {
  constexpr std::int64_t kHour_ms = 3'600'000;
  const LocalStore store;
  // The next tick is 20 minutes away.
  const auto offset = std::to_string((now_ms() + kHour_ms / 3) % kHour_ms) + "ms";
  std::vector<std::string> how = {"--at-most-for", "10m", "--every", "1h", "--offset", offset};
  EXPECT_EQ(run_scheduled(store, how).status.shell_status(), 0);
  const auto by_hand = last_run(store);
  EXPECT_GT(by_hand.at("next_possible_ms").as_int64(),
            by_hand.at("started_ms").as_int64() + kHour_ms / 4);
  const auto second = run_scheduled(store, how);
  EXPECT_EQ(second.status.shell_status(), 75);
  EXPECT_NE(second.err.find("--again runs it now"), std::string::npos) << second.err;
  how.insert(how.end(), {"--early", "30m"});
  EXPECT_EQ(run_scheduled(store, how).out, "ran\n") << "the next tick is still to be run";
  EXPECT_EQ(last_run(store).at("tick").as_int64(), by_hand.at("tick").as_int64() + 1);
}

TEST(CliScheduled, RetryFailedRepeatsAFailedRunUntilItSucceeds) {
  const LocalStore store;
  std::vector<std::string> how = {"--at-most-for", "10m", "--every", "7200h"};
  EXPECT_EQ(run_scheduled(store, how, "exit 3").status.shell_status(), 3);
  const auto refused = run_scheduled(store, how);
  EXPECT_EQ(refused.status.shell_status(), 75);
  EXPECT_NE(refused.err.find("--retry-failed repeats it now"), std::string::npos) << refused.err;
  how.emplace_back("--retry-failed");
  EXPECT_EQ(run_scheduled(store, how).out, "ran\n");
  EXPECT_EQ(text(last_run(store), "outcome"), "succeeded");
  EXPECT_EQ(run_scheduled(store, how).status.shell_status(), 75);
}

TEST(CliScheduled, AgainRunsUnderTheLockAndUsesNoTick) {
  const LocalStore store;
  std::vector<std::string> how = {"--at-most-for", "10m",  "--at-least-for", "5m",
                                  "--every",       "7200h"};
  EXPECT_EQ(run_scheduled(store, how).status.shell_status(), 0);
  const auto before = last_run(store);
  how.emplace_back("--again");
  std::vector<std::string> words = {"run", "job"};
  words.insert(words.end(), how.begin(), how.end());
  words.insert(words.end(), {"--", "sh", "-c", "echo began; read line; exit 4"});
  Process again(dlock_on(store.url(), words));
  EXPECT_EQ(again.read_line(patience()), "began");
  EXPECT_TRUE(is_held(store.url(), "job"));
  EXPECT_EQ(run_scheduled(store, how).status.shell_status(), 75) << "two never run at once";
  again.close_stdin();
  EXPECT_EQ(again.wait(patience())->shell_status(), 4) << again.collected_stderr();
  EXPECT_EQ(last_run(store), before);
}

TEST(CliScheduled, AtLeastForHoldsWithoutAProcess) {
  const LocalStore store;
  const std::vector<std::string> how = {"--at-most-for", "10m", "--at-least-for", "3s"};
  EXPECT_EQ(run_scheduled(store, how).status.shell_status(), 0);
  EXPECT_FALSE(is_held(store.url(), "job"));
  const auto refused = run_scheduled(store, how);
  EXPECT_EQ(refused.status.shell_status(), 75);
  EXPECT_NE(refused.err.find("--at-least-for"), std::string::npos) << refused.err;
  EXPECT_TRUE(testkit::eventually(
      patience(), [&] { return run_scheduled(store, how).status.shell_status() == 0; }));
}

TEST(CliScheduled, AKilledRunnersTickIsTakenOverAfterAtMostFor) {
  const LocalStore store;
  // Long enough for a busy machine to kill it, and to look, before it ends its command itself.
  const std::vector<std::string> how = {"--at-most-for", "4s", "--every", "7200h"};
  std::vector<std::string> words = {"run", "job"};
  words.insert(words.end(), how.begin(), how.end());
  words.insert(words.end(), {"--", "sh", "-c", "echo began; exec sleep 60"});
  Process runner(dlock_on(store.url(), words));
  EXPECT_EQ(runner.read_line(patience()), "began");
  runner.kill_and_wait();
  const auto early = run_scheduled(store, how);
  const auto before = last_run(store);
  EXPECT_EQ(early.status.shell_status(), 75);
  EXPECT_NE(early.err.find("if that has died"), std::string::npos) << early.err;
  EXPECT_TRUE(testkit::eventually(
      patience(), [&] { return run_scheduled(store, how).status.shell_status() == 0; }));
  const auto after = last_run(store);
  EXPECT_EQ(after.at("tick"), before.at("tick"));
  EXPECT_GE(after.at("started_ms").as_int64(), before.at("started_ms").as_int64() + 4000);
}

TEST(CliScheduled, AfterAtMostForTheCommandIsEnded) {
  const LocalStore store;
  const auto ended = run_scheduled(store, {"--at-most-for", "200ms", "--kill-after", "100ms"},
                                   "trap '' TERM; sleep 60");
  EXPECT_EQ(ended.status.shell_status(), 77) << ended.err;
  EXPECT_EQ(text(last_run(store), "outcome"), "overran");
  EXPECT_FALSE(is_held(store.url(), "job"));
}

// G16: a store that keeps no runs, or is away: the command does not run.
TEST(CliScheduled, G16_WithoutAStoreTheCommandDoesNotRun) {
  for (const std::string url : {"redis://127.0.0.1:1/0?connect_timeout=100ms",
                                "memcached://127.0.0.1:1?connect_timeout=100ms"}) {
    const auto failed =
        finish(dlock({"--store", url, "run", "job", "--at-most-for", "1s", "--", "echo", "ran"}));
    EXPECT_EQ(failed.status.shell_status(), 69) << failed.err;
    EXPECT_EQ(failed.out, "");
  }
}

TEST(CliScheduled, WhatDoesNotGoTogetherIsRefusedWithWhatToWrite) {
  const LocalStore store;
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"--at-most-for", "1s", "--at-least-for", "2s"}, "write 1s or less"},
      {{"--at-least-for", "2s"}, "add --at-most-for"},
      {{"--every", "2s"}, "add --at-most-for"},
      {{"--again"}, "add --at-most-for"},
      {{"--at-most-for", "1s", "--early", "1s"}, "--early: it is a time before a tick; add every"},
      {{"--at-most-for", "1s", "--every", "1h", "--early", "1h"}, "below the period"},
      {{"--at-most-for", "1s", "--retry-failed"}, "add every"},
      {{"--at-most-for", "1s", "--wait", "1s"}, "remove --wait, -w and -n"},
      {{"--at-most-for", "1s", "--shared"}, "leave --shared out"},
      {{"--at-most-for", "1s", "--every", "1h", "--offset", "1h"},
       "--offset 1h: it must be below the period, 1h"},
      {{"--at-most-for", "0"}, "--at-most-for"},
  };
  for (const auto& [options, remedy] : table) {
    const auto refused = run_scheduled(store, options);
    EXPECT_EQ(refused.status.shell_status(), 64);
    EXPECT_NE(refused.err.find(remedy), std::string::npos) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

/// Processes whose clocks are apart: up to 3 s in either direction.
class WrongClocks {
 public:
  explicit WrongClocks(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto seconds = static_cast<std::int64_t>(i % 7) - 3;
      const std::int64_t offset = seconds * 1'000'000'000;
      std::string bytes(sizeof offset, '\0');
      std::memcpy(bytes.data(), &offset, sizeof offset);
      testkit::write_file(file(i), bytes);
    }
  }
  testkit::ProcessOptions apply(testkit::ProcessOptions options, std::size_t which) const {
    options.env.emplace_back("LD_PRELOAD", DLOCK_CLOCK_SHIM);
    options.env.emplace_back("DLOCK_TEST_CLOCK", file(which).string());
    return options;
  }

 private:
  std::filesystem::path file(std::size_t which) const {
    return folder_ / ("clock" + std::to_string(which));
  }
  testkit::TempDir folder_{"dlock-clocks"};
};

std::int64_t ticks_asked_for() {
  const char* const text = std::getenv("DLOCK_TEST_TICKS");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? 4 : std::atoll(text);
}

constexpr std::int64_t kPeriod_ms = 3000;

/// One process of the case below, by the kernel's clock, which is the store's too.
struct Life {
  std::int64_t began = 0;
  std::int64_t ended = 0;  ///< or later
  std::string words;       ///< why it did not run the command; empty: it did
};

/// All of it lies where that tick is the nearest one.
bool lies_in(const Life& life, std::int64_t tick) {
  return life.began >= tick * kPeriod_ms - kPeriod_ms / 2 &&
         life.ended < tick * kPeriod_ms + kPeriod_ms / 2;
}

/// Around each tick all hosts come, from 1.2 s before it on, as by clocks that are apart.
std::vector<Life> come_at(std::int64_t tick, std::size_t hosts,
                          const std::function<std::unique_ptr<Process>()>& start) {
  std::vector<std::unique_ptr<Process>> all;
  std::vector<Life> lives;
  for (std::size_t i = 0; i < hosts; ++i) {
    const auto at = tick * kPeriod_ms - 1200 + static_cast<std::int64_t>(i) * 1200 / 20;
    testkit::eventually(patience(), [&] { return now_ms() >= at; });
    lives.push_back({now_ms(), 0, {}});
    all.push_back(start());
  }
  for (std::size_t i = 0; i < hosts; ++i) {
    EXPECT_EQ(all[i]->wait(patience())->shell_status(), 0) << all[i]->collected_stderr();
    lives[i].ended = now_ms();
    lives[i].words = all[i]->collected_stderr();
  }
  return lives;
}

/// How often each tick was run, by what the commands wrote.
std::map<std::int64_t, int> runs_of(const std::filesystem::path& log) {
  std::map<std::int64_t, int> runs;
  std::istringstream lines(testkit::read_file(log));
  std::string word;
  std::int64_t before = 0;
  for (std::int64_t token = 0, tick = 0; lines >> token >> word >> tick; before = token) {
    EXPECT_GT(token, before) << "the resource sees them in order";
    ++runs[tick];
  }
  return runs;
}

// ShedLock's case, and G30: whatever the processes' clocks say, and whenever in the tick they come.
// Never twice; and a tick that nobody ran had no process in it that could have: each whose whole
// life lies in it found the lock held, or the run before it not over.
TEST(CliScheduled, G30_TwentyProcessesWithClocksApartRunEachTickOnce) {
  constexpr std::size_t kHosts = 20;
  const LocalStore store;
  const WrongClocks clocks(kHosts);
  const auto log = store.folder() / "log";
  const auto note = store.folder() / "locks" / "runs%2Fjob.note";
  std::minstd_rand random(1);
  const auto start = [&] {
    auto options = dlock_on(
        store.url(), {"run", "job", "--at-most-for", "60s", "--at-least-for", "500ms", "--every",
                      std::to_string(kPeriod_ms) + "ms", "--early",
                      std::to_string(kPeriod_ms / 2) + "ms", "-E", "0", "--", "sh", "-c",
                      "echo $DLOCK_TOKEN $(grep ^tick " + note.string() + ") >> " + log.string()});
    return std::make_unique<Process>(clocks.apply(std::move(options), random() % kHosts));
  };
  const auto first = now_ms() / kPeriod_ms + 1;
  const auto last = first + ticks_asked_for() - 1;
  std::vector<Life> lives;
  for (auto tick = first; tick <= last; ++tick) {
    const auto more = come_at(tick, kHosts, start);
    lives.insert(lives.end(), more.begin(), more.end());
  }
  const auto runs = runs_of(log);
  for (const auto& [tick, count] : runs) EXPECT_EQ(count, 1) << tick;
  int missed = 0;
  int inside = 0;
  for (auto tick = first; tick <= last; ++tick) {
    const bool was_run = runs.contains(tick);
    missed += was_run ? 0 : 1;
    for (const auto& life : lives) {
      if (!lies_in(life, tick)) continue;
      ++inside;
      const bool may_leave_it =
          !life.words.empty() && life.words.find("this tick was run") == std::string::npos;
      EXPECT_TRUE(was_run || may_leave_it) << tick << ": " << life.words;
    }
  }
  std::cout << "ticks: " << last - first + 1 << ", run once: " << runs.size()
            << ", not run: " << missed << "; processes: " << lives.size()
            << ", wholly within a tick: " << inside << '\n';
  EXPECT_FALSE(runs.empty());
}

// G30: paused between the store's answer and its own next step, for longer than its time.
TEST(CliScheduled, G30_WhoWasStoppedInTheMiddleOfItDoesNotRunBesideAnother) {
  const LocalStore store;
  const std::vector<std::string> how = {"--at-most-for", "500ms", "--every", "7200h"};
  std::vector<std::string> words = {"run", "job"};
  words.insert(words.end(), how.begin(), how.end());
  words.insert(words.end(), {"--", "sh", "-c", "echo began; exec sleep 60"});
  Process runner(dlock_on(store.url(), words));
  EXPECT_EQ(runner.read_line(patience()), "began");
  ASSERT_TRUE(runner.pause());
  const auto over = last_run(store).at("started_ms").as_int64() + 600;
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return now_ms() > over; }));
  const auto other = run_scheduled(store, how);
  EXPECT_EQ(other.status.shell_status(), 75) << "its lock is held: it may still work";
  ASSERT_TRUE(runner.resume());
  EXPECT_EQ(runner.wait(patience())->shell_status(), 77) << runner.collected_stderr();
  EXPECT_EQ(text(last_run(store), "outcome"), "overran");
}

}  // namespace
}  // namespace dlock::cli_test

// SPDX-License-Identifier: Apache-2.0
//
// The texts and the JSON of the command's answers, with every field set and with none.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "cli/output/json.hpp"
#include "cli/output/last_run.hpp"
#include "cli/output/migrate_leased_output.hpp"
#include "cli/output/migrate_output.hpp"
#include "cli/output/plan_values.hpp"
#include "cli/output/semaphore_output.hpp"
#include "cli/output/text.hpp"
#include "dlock/error.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"
#include "program/signals.hpp"
#include "program/usage_hint.hpp"

namespace dlock::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using namespace std::chrono_literals;
namespace moves = core::migration;

Owner owner(std::string app, std::string host, std::int64_t pid) {
  return {"id-" + app, std::move(host), pid, std::move(app)};
}

const milliseconds kMoment =
    sys_days(std::chrono::year(2026) / 1 / 2).time_since_epoch() + 3h + 4min + 5s + 678ms;
const Break kBreak{{"", "web9", 9, "dlock"}, "deploy is stuck", kMoment};

LockStatus held_lock() {
  LockStatus status;
  status.name = "a/b";
  status.held = true;
  status.token = 7;
  status.owner = owner("report", "web1", 42);
  status.held_for = 200'500ms;
  status.remaining = 9'999ms;
  status.waiting = {owner("other", "web2", 43), {"session-5", "", 0, ""}};
  status.notes = {"a note"};
  return status;
}

LockStatus read_lock(std::size_t readers) {
  LockStatus status;
  status.name = "shared";
  status.held = true;
  status.mode = Mode::shared;
  status.readers.push_back({owner("first", "web1", 1), 5, 10s, 740ms, kBreak});
  status.readers.push_back({owner("second", "web2", 2), {}, {}, {}});
  status.readers.resize(readers);
  return status;
}

RunRecord run_of_a_tick() {
  RunRecord run;
  run.outcome = RunRecord::Outcome::failed;
  run.tick = 11;
  run.started = kMoment;
  run.ended = kMoment + 1s;
  run.at_least_until = kMoment + 20s;
  run.at_most_until = kMoment + 60s;
  run.status = 3;
  run.token = 12;
  run.owner = owner("job", "web3", 44);
  return run;
}

SemaphoreStatus semaphore() {
  SemaphoreStatus status;
  status.name = "pool";
  status.limit = 4;
  status.holders.push_back({owner("one", "web1", 1), 1, 8, 11s, 5s, kBreak});
  status.holders.push_back({owner("two", "web2", 2), 2, {}, {}, {}});
  status.waiting.push_back({owner("three", "web3", 3), 3, {}, {}, {}});
  status.notes = {"a note"};
  return status;
}

TEST(CliOutputText, RoundsDurationsFromTenSecondsOn) {
  EXPECT_EQ(rounded(9'999ms), "9s999ms");
  EXPECT_EQ(rounded(10'000ms), "10s");
  EXPECT_EQ(rounded(10'999ms), "10s");
  EXPECT_EQ(rounded(200'500ms), "3m20s");
  EXPECT_EQ(rounded(740ms), "740ms");
  EXPECT_EQ(age_text(9'999), "9s999ms");
  EXPECT_EQ(age_text(10'000), "10s");
  EXPECT_EQ(age_text(10'999), "10s");
  EXPECT_EQ(age_text(0), "0s");
}

TEST(CliOutputText, NamesAnOwnerByWhatIsKnown) {
  EXPECT_EQ(who(owner("app", "web1", 42)), "app (pid 42) on web1");
  EXPECT_EQ(who(owner("app", "web1", 0)), "app on web1");
  EXPECT_EQ(who(owner("app", "", 42)), "app (pid 42)");
  EXPECT_EQ(who(owner("", "web1", 42)), "a process (pid 42) on web1");
  EXPECT_EQ(who({"id", "", 42, ""}), "an unknown client (id)");
  EXPECT_EQ(who({}), "somebody");
}

TEST(CliOutputText, ExplainsAFailureWithLockStoreAndServerText) {
  const auto error = make_error_code(errc::timed_out);
  const auto what = error.message();
  EXPECT_EQ(explanation(error, {}), what);
  EXPECT_EQ(explanation(error, {"a/b", {}, {}}), "a/b: " + what);
  EXPECT_EQ(explanation(error, {{}, "new", {}}), "new: " + what);
  EXPECT_EQ(explanation(error, {"a/b", "default", {}}), "a/b: " + what);
  EXPECT_EQ(explanation(error, {"a/b", "new", "it is down"}),
            "a/b (store 'new'): " + what + ": it is down");
}

TEST(CliOutputText, ShowsALockWithAllItsFields) {
  auto status = held_lock();
  EXPECT_EQ(to_text(status, {}),
            "a/b: held by report (pid 42) on web1\n"
            "  for         3m20s\n"
            "  token       7\n"
            "  lease left  9s999ms\n"
            "  waiting     other (pid 43) on web2\n"
            "  waiting     an unknown client (session-5)\n"
            "  note        a note");
  status.broken = kBreak;
  status.waiting.clear();
  status.notes.clear();
  EXPECT_EQ(to_text(status, run_of_a_tick()),
            "a/b: held by report (pid 42) on web1\n"
            "  for         3m20s\n"
            "  token       7\n"
            "  broken      by dlock (pid 9) on web9 at 2026-01-02T03:04:05Z: deploy is stuck\n"
            "  free within 9s999ms\n"
            "  last run    2026-01-02T03:04:05Z by job (pid 44) on web3\n"
            "  went        failed (status 3), ended 2026-01-02T03:04:06Z\n"
            "  next run    2026-01-02T03:04:25Z or later");
}

TEST(CliOutputText, ShowsALockWithoutFields) {
  LockStatus status;
  status.name = "a\nb";
  EXPECT_EQ(to_text(status, {}), "a\\x0ab: free");
  status.sealed = true;
  EXPECT_EQ(to_text(status, {}), "a\\x0ab: sealed");
  status.sealed = false;
  status.held = true;
  EXPECT_EQ(to_text(status, {}), "a\\x0ab: held by somebody");
}

TEST(CliOutputText, ShowsEachReader) {
  EXPECT_EQ(to_text(read_lock(2), {}),
            "shared: held by 2 readers\n"
            "  reader      first (pid 1) on web1, for 10s, token 5, lease left 740ms, "
            "broken by dlock (pid 9) on web9 at 2026-01-02T03:04:05Z: deploy is stuck\n"
            "  reader      second (pid 2) on web2");
  EXPECT_EQ(holder_words(read_lock(1)), "a reader");
  EXPECT_EQ(holder_words(read_lock(2)), "2 readers");
  EXPECT_EQ(holder_words(held_lock()), "report (pid 42) on web1");
}

TEST(CliOutputText, ShowsListsAsTablesWithAColumnWidthPerColumn) {
  auto free = LockStatus();
  free.name = "a";
  auto sealed = LockStatus();
  sealed.name = "long/name";
  sealed.sealed = true;
  const std::string locks =
      "NAME       HELD BY                  FOR    TOKEN  LEASE LEFT  WAITING\n"
      "a          (free)                   -      -      -           0\n"
      "a/b        report (pid 42) on web1  3m20s  7      9s999ms     2\n"
      "long/name  (sealed)                 -      -      -           0";
  EXPECT_EQ(to_text({free, held_lock(), sealed}, {}), locks);
  auto unknown = SemaphoreStatus();
  unknown.name = "unknown";
  EXPECT_EQ(to_text(std::vector{free}, {semaphore(), unknown}),
            "NAME  HELD BY  FOR  TOKEN  LEASE LEFT  WAITING\n"
            "a     (free)   -    -      -           0\n\n"
            "SEMAPHORE  PERMITS  HELD  FREE  HOLDERS  WAITING\n"
            "pool       4        3     1     2        1\n"
            "unknown    -        0     0     0        0");
}

TEST(CliOutputText, ShowsASemaphoreWithAllItsFields) {
  auto status = semaphore();
  EXPECT_EQ(to_text(status),
            "pool: 1 of 4 permits free\n"
            "  holder      one (pid 1) on web1, 1 permit, for 11s, token 8, lease left 5s, "
            "broken by dlock (pid 9) on web9 at 2026-01-02T03:04:05Z: deploy is stuck\n"
            "  holder      two (pid 2) on web2, 2 permits\n"
            "  waiting     three (pid 3) on web3, 3 permits\n"
            "  note        a note");
  status = {};
  status.name = "pool";
  EXPECT_EQ(to_text(status), "pool: nobody has said how many permits it has");
  status.limit = 1;
  EXPECT_EQ(to_text(status), "pool: 1 of 1 permit free");
}

StoreFinding finding() {
  StoreFinding finding;
  finding.report.name = "main";
  finding.report.backend = "redis";
  finding.report.reached = true;
  finding.took = 12ms;
  auto& can = finding.report.capabilities.emplace();
  can.guarantee = Guarantee::exclusive;
  can.assumptions = {{"clock", "the clock is right"}};
  can.shortfalls = {{"it is small", "enlarge it"}};
  can.fair = can.shared_mode = can.permits = true;
  can.token = TokenStrength::durable;
  can.wake_up = WakeUp::push;
  can.lease = 30s;
  can.can_tell_contention = can.can_ask = can.can_adopt = true;
  can.can_bound_queue = can.can_head_start = true;
  can.can_raise = can.can_seal = true;
  can.record_losses = {{"it forgets", "write it down"}};
  can.notes = {"version 7"};
  using Result = SelfTestReport::Result;
  finding.self_tests = {{"one:1",
                         {{"acquire", Result::passed, ""},
                          {"renew", Result::passed, ""},
                          {"release", Result::wrong, "it was ignored"},
                          {"read", Result::not_tested, ""}}},
                        {"two:2", {{"acquire", Result::not_tested, "no answer"}}}};
  return finding;
}

TEST(CliOutputText, ShowsAStoreWithAllItsFields) {
  EXPECT_EQ(to_text({finding()}),
            "main (redis): reached in 12 ms\n"
            "  promises    exclusive, fair, shared mode, semaphores, tokens durable, "
            "wakes waiters by push\n"
            "  lease       30s per claim\n"
            "  also        tells a holder that somebody waits, asks a holder for its lock, "
            "gives a grant to another process, counts who waits (max_queue), "
            "lets waiters pass others (head_start)\n"
            "  assuming    clock: the clock is right\n"
            "  not more    it is small; to change that: enlarge it\n"
            "  migration   locks may move here\n"
            "  migration   a record may be lost: it forgets; to change that: write it down\n"
            "  server      version 7\n"
            "  self-test   one:1: passed: acquire, renew\n"
            "  self-test   one:1: WRONG: release: it was ignored\n"
            "  self-test   one:1: not tested: read\n"
            "  self-test   two:2: not tested: acquire: no answer");
}

TEST(CliOutputText, ShowsAStoreWithoutFields) {
  StoreFinding plain;
  plain.report.name = "main";
  plain.report.message = "unknown scheme";
  EXPECT_EQ(to_text({plain}), "main: cannot be used: unknown scheme");
  plain.report.backend = "redis";
  plain.report.error = make_error_code(errc::unavailable);
  plain.took = 3ms;
  const auto what = plain.report.error.message();
  EXPECT_EQ(to_text({plain}), "main (redis): not reached after 3 ms: " + what + ": unknown scheme");
  plain.report.message.clear();
  EXPECT_EQ(to_text({plain}), "main (redis): not reached after 3 ms: " + what);
  auto& can = plain.report.capabilities.emplace();
  can.lease_scope = LeaseScope::none;
  const std::string reached =
      "main (redis): reached in 3 ms\n"
      "  promises    best_effort, tokens none, wakes waiters by poll\n"
      "  lease       none: a dead holder's lock is free at once\n"
      "  migration   locks can neither move here nor away\n"
      "  REFUSED     ";
  EXPECT_EQ(to_text({plain}), reached + what);
  plain.report.message = "it is too small";
  EXPECT_EQ(to_text({plain, plain}), reached + "it is too small\n\n" + reached + "it is too small");
  plain.report.error.clear();
  can.can_raise = can.can_seal = true;
  can.can_ask = true;
  EXPECT_EQ(to_text({plain}),
            "main (redis): reached in 3 ms\n"
            "  promises    best_effort, tokens none, wakes waiters by poll\n"
            "  lease       none: a dead holder's lock is free at once\n"
            "  also        asks a holder for its lock\n"
            "  migration   locks may move here and away");
  can.can_raise = false;
  can.record_losses = {{"it forgets", "write it down"}};
  EXPECT_NE(to_text({plain}).find("\n  migration   locks can neither move here nor away"
                                  "\n  migration   a record may be lost: it forgets;"),
            std::string::npos);
  can.can_seal = false;
  EXPECT_EQ(to_text({plain}).find("a record may be lost"), std::string::npos);
}

TEST(CliOutputJson, ShowsALockWithAllItsFields) {
  auto status = held_lock();
  status.broken = kBreak;
  status.waiting.pop_back();
  EXPECT_EQ(
      to_json(status, run_of_a_tick(), semaphore()),
      R"({"name":"a/b","held":true,"sealed":false,"token":7,)"
      R"("owner":{"host":"web1","pid":42,"pid_namespace":null,"app":"report","id":"id-report"},)"
      R"("since_ms":200500,"remaining_ms":9999,)"
      R"("waiting":[{"host":"web2","pid":43,"pid_namespace":null,"app":"other","id":"id-other"}],)"
      R"("notes":["a note"],"mode":"exclusive","readers":[],)"
      R"("broken":{"by":{"host":"web9","pid":9,"pid_namespace":null,"app":"dlock","id":null},)"
      R"("reason":"deploy is stuck","at_ms":1767323045678},)"
      R"("last_run":{"outcome":"failed","status":3,"tick":11,"token":12,)"
      R"("started_ms":1767323045678,"ended_ms":1767323046678,"next_possible_ms":1767323065678,)"
      R"("owner":{"host":"web3","pid":44,"pid_namespace":null,"app":"job","id":"id-job"}},)"
      R"("semaphore":)" +
          to_json(semaphore()) + "}");
}

TEST(CliOutputJson, ShowsWhatIsNotKnownAsNull) {
  LockStatus status;
  status.name = "a\xFF";
  EXPECT_EQ(to_json(status, {}, {}),
            "{\"name\":\"a\xEF\xBF\xBD\",\"held\":false,\"sealed\":false,\"token\":null,"
            "\"owner\":null,\"since_ms\":null,\"remaining_ms\":null,\"waiting\":[],\"notes\":[],"
            "\"mode\":null,\"readers\":[],\"broken\":null,\"last_run\":null,\"semaphore\":null}");
  status.name = "a";
  status.held = true;
  status.owner.emplace();
  EXPECT_NE(to_json(status, RunRecord(), {})
                .find(R"("owner":{"host":null,"pid":null,"pid_namespace":null,"app":null,)"
                      R"("id":null},"since_ms")"),
            std::string::npos);
  EXPECT_NE(to_json(status, RunRecord(), {})
                .find(R"("last_run":{"outcome":"running","status":null,"tick":null,)"
                      R"("token":null,"started_ms":0,"ended_ms":null,)"),
            std::string::npos);
}

TEST(CliOutputJson, ShowsEachReaderAndEachPermit) {
  EXPECT_NE(to_json(read_lock(2), {}, {})
                .find(R"("mode":"shared","readers":[{"host":"web1","pid":1,"pid_namespace":null,)"
                      R"("app":"first","id":"id-first","token":5,"since_ms":10000,)"
                      R"("remaining_ms":740,"broken":{"by":{"host":"web9")"),
            std::string::npos);
  EXPECT_NE(to_json(read_lock(2), {}, {})
                .find(R"("app":"second","id":"id-second","token":null,"since_ms":null,)"
                      R"("remaining_ms":null,"broken":null}],"broken":null)"),
            std::string::npos);
  auto status = semaphore();
  status.holders[0].broken.reset();
  status.holders.pop_back();
  EXPECT_EQ(
      to_json(status),
      R"({"name":"pool","limit":4,"held":1,"free":3,"holders":[{"host":"web1","pid":1,)"
      R"("pid_namespace":null,"app":"one","id":"id-one","permits":1,"token":8,"since_ms":11000,)"
      R"("remaining_ms":5000,"broken":null}],"waiting":[{"host":"web3","pid":3,)"
      R"("pid_namespace":null,"app":"three","id":"id-three","permits":3}],"notes":["a note"]})");
  status.limit.reset();
  EXPECT_NE(to_json(status).find(R"("limit":null,"held":1,"free":null)"), std::string::npos);
  EXPECT_EQ(semaphore_set_json("pool", 9), R"({"event":"set","name":"pool","limit":9})");
  LockStatus lock;
  lock.name = "a";
  const auto list = to_json(std::vector{lock}, {SemaphoreStatus{"pool", 2, {}, {}, {}}});
  EXPECT_EQ(list.substr(0, 18), R"([{"name":"a","held)");
  EXPECT_NE(
      list.find(R"("broken":null,"kind":"lock"},{"kind":"semaphore","name":"pool","limit":2,)"
                R"("permits_held":0,"permits_free":2,"holders":[],"waiting":[],"notes":[]}])"),
      std::string::npos)
      << list;
}

TEST(CliOutputJson, ShowsTheEventsOfHoldRunAndBreak) {
  HoldEvent event;
  event.name = "a";
  event.store = "main";
  event.token = 7;
  event.remaining = 1500us;
  event.permits = 2;
  EXPECT_EQ(to_json(event), R"({"event":"held","name":"a","token":7,"store":"main",)"
                            R"("remaining_ms":1,"sequencer":null,"permits":2})");
  event.state = HandleState::suspect;
  event.permits = 0;
  event.remaining.reset();
  event.token.reset();
  EXPECT_EQ(to_json(event), R"({"event":"suspect","name":"a","token":null,"store":"main",)"
                            R"("remaining_ms":null,"sequencer":null})");
  event.state = HandleState::lost;
  event.reason = LossReason::broken;
  event.broken_by = "dlock";
  EXPECT_EQ(to_json(event), R"({"event":"lost","name":"a","token":null,"store":"main",)"
                            R"("reason":"broken","broken_by":"dlock","sequencer":null})");
  event.state = HandleState::released;
  event.broken_by.clear();
  EXPECT_EQ(to_json(event), R"({"event":"released","name":"a","token":null,"store":"main",)"
                            R"("sequencer":null})");

  EXPECT_EQ(to_json(RunEvent{"suspect", LossReason::none, "a", 7, 2ms, 3ms, ""}),
            R"({"event":"suspect","name":"a","token":7,"remaining_ms":2,"margin_ms":3,)"
            R"("reason":null,"broken_by":null})");
  EXPECT_EQ(to_json(RunEvent{"lost", LossReason::expired, "a", {}, {}, {}, "x"}),
            R"({"event":"lost","name":"a","token":null,"remaining_ms":null,"margin_ms":null,)"
            R"("reason":"expired","broken_by":"x"})");

  EXPECT_EQ(to_json(BrokenLock{"a", 7, false, false, {}, true}),
            R"({"event":"broken","name":"a","token":7})");
  EXPECT_EQ(to_json(BrokenLock{"a", 7, true, true, 5ms, true}),
            R"({"event":"broken","name":"a","token":7,"kind":"semaphore","holder_may_work_ms":5})");
  EXPECT_EQ(to_json(BrokenLock{"a", 7, false, false, 5ms, false}),
            R"({"event":"marked","name":"a","token":7,"free_within_ms":5})");
  EXPECT_EQ(to_json(AskedLock{"asked", "a", 7, true}),
            R"({"event":"asked","name":"a","token":7,"heard":true})");
  EXPECT_EQ(to_json(AskedLock{"gave_way", "a", {}, {}}),
            R"({"event":"gave_way","name":"a","token":null,"heard":null})");
}

TEST(CliOutputJson, ShowsAStoreWithAllItsFields) {
  auto full = finding();
  full.self_tests.pop_back();
  EXPECT_EQ(to_json({full}),
            R"([{"store":"main","backend":"redis","reached":true,"connect_ms":12,"error":null,)"
            R"("message":null,"guarantee":"exclusive","assumptions":[{"name":"clock",)"
            R"("meaning":"the clock is right"}],"shortfalls":[{"reason":"it is small",)"
            R"("remedy":"enlarge it"}],"fair":true,"token":"durable","wake_up":"push",)"
            R"("lease_scope":"claim","lease_ms":30000,"migration":{"can_raise":true,)"
            R"("can_seal":true,"record_losses":[{"reason":"it forgets",)"
            R"("remedy":"write it down"}]},"notes":["version 7"],"shared_mode":true,)"
            R"("can_tell_contention":true,"can_bound_queue":true,"can_head_start":true,)"
            R"("can_ask":true,"can_adopt":true,"semaphores":true,"self_test":[{"server":"one:1",)"
            R"("steps":[{"step":"acquire","result":"passed","reason":null},)"
            R"({"step":"renew","result":"passed","reason":null},)"
            R"({"step":"release","result":"wrong","reason":"it was ignored"},)"
            R"({"step":"read","result":"not_tested","reason":null}]}]}])");
  full.report.capabilities.reset();
  full.report.error = make_error_code(errc::unavailable);
  full.report.message = "why";
  EXPECT_EQ(to_json({full}),
            R"([{"store":"main","backend":"redis","reached":true,"connect_ms":12,"error":")" +
                full.report.error.message() + R"(","message":"why","guarantee":null}])");
  full.report.capabilities.emplace().lease_scope = LeaseScope::none;
  EXPECT_NE(to_json({full}).find(R"("lease_scope":"none","lease_ms":null,)"), std::string::npos);
}

TEST(CliOutputRun, ShowsTheResultOfARunAndTheNextPossibleTime) {
  auto run = run_of_a_tick();
  EXPECT_EQ(utc(kMoment), "2026-01-02T03:04:05Z");
  EXPECT_EQ(utc(kMoment + 321ms), "2026-01-02T03:04:05Z");
  EXPECT_EQ(utc(kMoment + 322ms), "2026-01-02T03:04:06Z");
  RunRefusal why;
  why.reason = RunRefusal::Reason::was_run;
  why.last = run;
  why.now = kMoment + 9s;
  const std::string went = "job (pid 44) on web3, failed (status 3), ended 2026-01-02T03:04:06Z; ";
  EXPECT_EQ(words_for("a", why, ""),
            "a: this tick was run by " + went +
                "another may follow in 11s; --retry-failed repeats it now");
  why.last->outcome = RunRecord::Outcome::overran;
  EXPECT_TRUE(words_for("a", why, "").ends_with("--retry-failed repeats it now"));
  why.last->outcome = RunRecord::Outcome::succeeded;
  EXPECT_TRUE(words_for("a", why, "").ends_with("; --again runs it now"));
  why.last->outcome = RunRecord::Outcome::failed;
  why.reason = RunRefusal::Reason::too_early;
  EXPECT_EQ(words_for("a", why, ""),
            "a: was run by " + went + "another may follow in 11s (--at-least-for)");
  why.now = kMoment + 19'999ms;
  EXPECT_EQ(words_for("a", why, ""),
            "a: was run by " + went + "another may follow in 1ms (--at-least-for)");
  why.now = kMoment + 20s;
  EXPECT_EQ(words_for("a", why, ""),
            "a: was run by " + went + "another may follow now (--at-least-for)");
  why.reason = RunRefusal::Reason::running;
  why.last->outcome = RunRecord::Outcome::running;
  why.last->status.reset();
  why.last->ended.reset();
  EXPECT_EQ(words_for("a", why, ""),
            "a: is being run by job (pid 44) on web3 since 2026-01-02T03:04:05Z; "
            "if that has died, another may follow in 40s");
  EXPECT_EQ(how_it_went(*why.last), "runs, or has died");
  why = {};
  why.reason = RunRefusal::Reason::busy;
  EXPECT_EQ(words_for("a", why, ""), "a: somebody else holds the lock");
  EXPECT_EQ(words_for("a", why, "held by x"), "a: held by x");
}

moves::Plan gate_plan() {
  moves::Plan plan;
  plan.name = "p";
  plan.from = "old";
  plan.to = "new";
  plan.max_lease = 30s;
  plan.patterns = {"a/**", "b/*"};
  return plan;
}

moves::Record record(moves::MoveState state) {
  moves::Record record;
  record.state = state;
  record.gen = {3, 4};
  record.since_ms = 1'000;
  return record;
}

const std::vector<moves::Stranger> kStrangers{{"old", "a/1", owner("app", "web1", 42), false},
                                              {"new", "a/2", {"session-5", "", 0, ""}, true}};
const std::string kStrangerLines =
    "\n  holds 'a/1' in 'old' and does not take part: app (pid 42 on web1)"
    "\n  waits for 'a/2' in 'new' and does not take part: session-5";
const std::string kStrangersJson =
    R"("strangers":[{"store":"old","host":"web1","pid":42,"pid_namespace":null,"app":"app",)"
    R"("id":"id-app","name":"a/1","holds":true},{"store":"new","host":"","pid":0,)"
    R"("pid_namespace":null,"app":"","id":"session-5","name":"a/2","holds":false}])";

TEST(CliOutputMove, ShowsAPlanWithAllItsFields) {
  moves::PlanReport report;
  report.plan = gate_plan();
  report.plan.lossy_target = true;
  report.names = {"a/1", "b/2"};
  report.strangers = kStrangers;
  report.objections = {"it is too long"};
  report.started = true;
  EXPECT_EQ(to_text(report),
            "refused: it is too long\n"
            "plan p: all locks of 'a/**' and 'b/*' from 'old' to 'new', "
            "leases there 30s at most\n"
            "'new' can forget locks: a rollback waits one lease more\n"
            "started; no lock has moved. Next: dlock migrate advance p --all\n"
            "seen there now: 2\n"
            "  a/1\n"
            "  b/2" +
                kStrangerLines);
  EXPECT_EQ(to_json(report),
            R"({"plan":"p","from":"old","to":"new","patterns":["a/**","b/*"],)"
            R"("max_lease_ms":30000,"target_forgets":true,"names":["a/1","b/2"],)" +
                kStrangersJson + R"(,"objections":["it is too long"],"started":true})");
  report = {};
  report.plan = gate_plan();
  report.plan.leased_target = false;
  EXPECT_EQ(to_text(report),
            "plan p: all locks of 'a/**' and 'b/*' from 'old' to 'new'\nnone is held there now");
}

moves::PlanStatus move_status() {
  moves::PlanStatus status;
  status.plan = gate_plan();
  auto add = [&status](std::string name) -> moves::NameStatus& {
    status.names.emplace_back().name = std::move(name);
    return status.names.back();
  };
  auto& open = add("a/open");
  open.in_source = held_lock();
  auto& moved = add("a/moved");
  moved.record = record(moves::MoveState::moved);
  moved.in_source.emplace().waiting = {owner("late", "web4", 45)};
  moved.in_target.emplace().held = true;
  moved.alarms = {"it burns"};
  add("a/closing").record = record(moves::MoveState::closing);
  return status;
}

TEST(CliOutputMove, ShowsTheStatusOfEachLock) {
  auto status = move_status();
  status.finished = true;
  status.alarms = {"the record is lost"};
  status.next = "dlock migrate finish p";
  auto& gate = status.gate.emplace();
  gate.state = moves::GateState::turned;
  gate.version = 5;
  gate.floor = 6;
  gate.since_ms = 500;
  EXPECT_EQ(to_text(status, 13'500),
            "plan p: from 'old' to 'new', finished\n"
            "ALARM: the record is lost\n"
            "locks of 'a/**' and 'b/*' that are made later: in 'new', for 13s\n"
            "a/open: in 'old'; held in 'old' by report (pid 42 on web1)\n"
            "a/moved: moved to 'new' for 12s; held in 'new' by somebody\n"
            "  waits in 'old' and does not take part: late (pid 45 on web4)\n"
            "  ALARM: it burns\n"
            "a/closing: on its way back to 'old' for 12s\n"
            "next: dlock migrate finish p");
  status.names.resize(2);
  EXPECT_EQ(
      to_json(status, 13'500),
      R"({"plan":"p","from":"old","to":"new","patterns":["a/**","b/*"],"max_lease_ms":30000,)"
      R"("finished":true,"gate":{"state":")" +
          std::string(to_string(moves::GateState::turned)) +
          R"(","version":5,"floor":6},"next":"dlock migrate finish p",)"
          R"("alarms":["the record is lost"],"locks":[{"name":"a/open","state":")" +
          moves::state_text({}) +
          R"(","gen":null,"since_ms":null,"holder":{"store":"old","host":"web1","pid":42,)"
          R"("pid_namespace":null,"app":"report","id":"id-report"},"laggards":[],"alarms":[]},)"
          R"({"name":"a/moved","state":")" +
          moves::state_text(status.names[1].record) +
          R"(","gen":"3.4","since_ms":12500,"holder":{"store":"new","host":"","pid":0,)"
          R"("pid_namespace":null,"app":"","id":""},"laggards":[{"store":"old","host":"web4",)"
          R"("pid":45,"pid_namespace":null,"app":"late","id":"id-late"}],)"
          R"("alarms":["it burns"]}]})");
}

TEST(CliOutputMove, ShowsNoAgeBelowZero) {
  auto status = move_status();
  status.names.erase(status.names.begin(), status.names.begin() + 2);
  status.gate.emplace().since_ms = 1'000;
  const auto text = to_text(status, 999);
  EXPECT_EQ(text,
            "plan p: from 'old' to 'new'\n"
            "locks of 'a/**' and 'b/*' that are made later: in 'old', for 0s\n"
            "a/closing: on its way back to 'old' for 0s");
  EXPECT_NE(to_json(status, 999).find(R"("since_ms":0,"holder":null)"), std::string::npos);
  EXPECT_NE(to_json(status, 1'001).find(R"("since_ms":1,"holder":null)"), std::string::npos);
}

moves::StepReport step(std::string name, moves::Verdict verdict) {
  moves::StepReport step;
  step.name = std::move(name);
  step.verdict = verdict;
  step.text = "it is held";
  return step;
}

TEST(CliOutputMove, ShowsEachStep) {
  moves::StepsReport report;
  report.plan = gate_plan();
  report.strangers = kStrangers;
  report.steps = {step("a/1", moves::Verdict::done), step("a/2", moves::Verdict::waiting),
                  step("", moves::Verdict::refused)};
  report.steps[0].record = record(moves::MoveState::moved);
  report.steps[0].changed = true;
  report.steps[1].holder = "app";
  report.gate.emplace().state = moves::GateState::final_;
  const std::string lines =
      "a/1: moved to 'new'\na/2: it is held (" + moves::state_text({}) + ")\nplan p: it is held";
  EXPECT_EQ(to_text(report),
            lines + "\nlocks of 'a/**' and 'b/*' that are made later: in 'new'" + kStrangerLines);
  EXPECT_EQ(to_json(report),
            R"({"plan":"p","from":"old","to":"new","patterns":["a/**","b/*"],)"
            R"("max_lease_ms":30000,"finished":false,"withdrawn":false,"gate":{"state":")" +
                std::string(to_string(moves::GateState::final_)) + R"(","version":0,"floor":0},)" +
                kStrangersJson + R"(,"locks":[{"name":"a/1","outcome":"done","state":")" +
                moves::state_text(report.steps[0].record) +
                R"(","gen":"3.4","changed":true,"holder":null,"text":"it is held"},)"
                R"({"name":"a/2","outcome":"waiting","state":")" +
                moves::state_text({}) +
                R"(","gen":null,"changed":false,"holder":"app","text":"it is held"},)"
                R"({"name":"","outcome":"refused","state":")" +
                moves::state_text({}) +
                R"(","gen":null,"changed":false,"holder":null,"text":"it is held"}]})");
  report.strangers.clear();
  report.withdrawn = true;
  EXPECT_EQ(to_text(report), lines + "\nplan p is withdrawn");
  report.withdrawn = false;
  report.finished = true;
  EXPECT_EQ(to_text(report), lines +
                                 "\nplan p is finished: its locks are at home in 'new'\n"
                                 "configuration: write `store: new` instead of `migrate`, "
                                 "program by program");
  EXPECT_STREQ(outcome_of(moves::Verdict::unreachable), "unreachable");
  EXPECT_STREQ(outcome_of(moves::Verdict::stopped), "stopped");
}

TEST(CliOutputMove, NamesAtMostFiftyLocksThatAreDone) {
  moves::StepsReport report;
  report.plan = gate_plan();
  for (int i = 0; i < 50; ++i) report.steps.push_back(step("a", moves::Verdict::done));
  const auto fifty = to_text(report);
  EXPECT_EQ(std::count(fifty.begin(), fifty.end(), '\n'), 49) << fifty;
  report.steps.push_back(step("b", moves::Verdict::waiting));
  EXPECT_EQ(to_text(report), "b: it is held (" + moves::state_text({}) + ")\n50 others are done");
}

moves::Plan leased_plan() {
  auto plan = gate_plan();
  plan.patterns = {"a/**", "c"};
  plan.gate = "notes";
  plan.lease = 10s;
  return plan;
}

moves::LeasedGate leased_gate(moves::LeasedState state) {
  moves::LeasedGate gate;
  gate.state = state;
  gate.version = 2;
  gate.from = "old";
  gate.to = "new";
  gate.floor = 3;
  gate.ceiling = 9;
  gate.since_ms = 1'000;
  return gate;
}

const std::string kLeasedHeader = "plan p: from 'old' to 'new', gate in 'notes'";
const std::string kLeasedJson =
    R"({"plan":"p","from":"old","to":"new","gate_store":"notes","gate_lease_ms":10000,)"
    R"("max_lease_ms":30000,)";
const std::string kLeasedRoute =
    "\nconfiguration of every program: `- { match: \"a/**\", migrate: { from: old, to: new, plan: "
    "p, gate: notes } }`";
const std::string kStrangerJson =
    R"("strangers":[{"store":"old","name":"a/1","holds":true,"host":"web1","pid":42,)"
    R"("app":"app","id":"id-app"}])";

TEST(CliOutputLeased, ShowsAPlanWithAllItsFields) {
  moves::LeasedPlanReport report;
  report.plan = leased_plan();
  const auto head = kLeasedHeader + "\nprograms rely on a reading of the gate for 10s at most";
  EXPECT_EQ(to_text(report), head + "\n  a/**\n  c\nnext: dlock migrate start p");
  report.remarks = {"a remark"};
  report.objections = {"it is too long"};
  EXPECT_EQ(to_text(report), "refused: it is too long\n" + head + "\nnote: a remark\n  a/**\n  c");
  EXPECT_EQ(to_json(report), kLeasedJson + R"("patterns":["a/**","c"],)"
                                           R"("objections":["it is too long"],)"
                                           R"("remarks":["a remark"]})");
}

TEST(CliOutputLeased, ShowsTheGateAndTheRouteOfEveryProgram) {
  moves::LeasedStatus status;
  status.plan = leased_plan();
  status.gate = leased_gate(moves::LeasedState::source_then_target);
  status.alarms = {"it burns"};
  status.remarks = {"a remark"};
  status.strangers = {kStrangers[0]};
  status.next = "wait";
  EXPECT_EQ(to_text(status, 14'999),
            kLeasedHeader +
                "\nALARM: it burns\nS_THEN_T for 13s: locks are acquired in 'old', then in 'new'"
                "\nnote: a remark\n  seen now: " +
                moves::describe(kStrangers[0]) + kLeasedRoute + "\nnext: wait");
  EXPECT_EQ(to_json(status, 14'999),
            kLeasedJson +
                R"("gate":{"state":"S_THEN_T","ver":2,"floor":3,"ceiling":9,)"
                R"("since_ms":13999},"next":"wait","alarms":["it burns"],)"
                R"("remarks":["a remark"],)" +
                kStrangerJson + R"(,"patterns":["a/**","c"]})");
  EXPECT_NE(to_json(status, 999).find(R"("since_ms":0})"), std::string::npos);
  EXPECT_NE(to_json(status, 1'001).find(R"("since_ms":1})"), std::string::npos);
}

TEST(CliOutputLeased, ShowsALostGate) {
  moves::LeasedStatus status;
  status.plan = leased_plan();
  status.next = "restore the gate";
  EXPECT_EQ(to_text(status, 0), kLeasedHeader + "\nnext: restore the gate");
  EXPECT_NE(to_json(status, 0).find(R"("gate":null)"), std::string::npos);
}

TEST(CliOutputLeased, ShowsTheStoreThatAPlanHasLeftItsLocksIn) {
  moves::LeasedStatus status;
  status.plan = leased_plan();
  for (const auto& [state, store] : {std::pair(moves::LeasedState::final_, "new"),
                                     std::pair(moves::LeasedState::ended, "old")}) {
    status.gate = leased_gate(state);
    const auto line =
        std::string("\nconfiguration of every program: `- { match: \"a/**\", store: ") + store +
        " }`";
    EXPECT_NE(to_text(status, 0).find(line), std::string::npos) << to_text(status, 0);
  }
}

TEST(CliOutputLeased, ShowsAStep) {
  moves::LeasedStepReport step;
  step.plan = leased_plan();
  step.report.verdict = moves::Verdict::done;
  step.report.text = "it is so";
  EXPECT_EQ(to_text(step), "p: it is so") << "no gate is known";
  step.report.gate = leased_gate(moves::LeasedState::target);
  step.report.changed = true;
  EXPECT_EQ(to_text(step), "p: it is so" + kLeasedRoute);
  step.report.gate->state = moves::LeasedState::final_;
  step.finished = true;
  const std::string home = "\nplan p is finished: its locks are at home in 'new'";
  EXPECT_EQ(to_text(step), "p: it is so" + home +
                               "\nconfiguration of every program: `- { match: \"a/**\", store: "
                               "new }`");
  step.finished = false;
  step.withdrawn = true;
  step.report.gate->state = moves::LeasedState::ended;
  EXPECT_EQ(to_text(step),
            "p: it is so\nplan p is withdrawn"
            "\nconfiguration of every program: `- { match: \"a/**\", store: old }`");
  step.withdrawn = false;
  step.report.verdict = moves::Verdict::waiting;
  step.report.gate->state = moves::LeasedState::source_then_target;
  step.report.strangers = {kStrangers[0]};
  EXPECT_EQ(to_text(step), "p: it is so\n  seen now: " + moves::describe(kStrangers[0]))
      << "no configuration is due while it waits";
  EXPECT_EQ(to_json(step, 2'000), kLeasedJson +
                                      R"("outcome":"waiting","changed":true,"text":"it is so",)"
                                      R"("gate":{"state":"S_THEN_T","ver":2,"floor":3,"ceiling":9,)"
                                      R"("since_ms":1000},)" +
                                      kStrangerJson + R"(,"finished":false,"withdrawn":false})");
}

TEST(CliOutputStatus, EachErrorHasItsExitStatus) {
  using program::Exit;
  const std::pair<errc, Exit> table[] = {
      {errc::timed_out, Exit::not_obtained},  {errc::not_holder, Exit::not_obtained},
      {errc::not_found, Exit::not_obtained},  {errc::queue_full, Exit::not_obtained},
      {errc::lock_lost, Exit::lost},          {errc::invalid_name, Exit::usage},
      {errc::invalid_argument, Exit::usage},  {errc::not_supported, Exit::usage},
      {errc::protocol, Exit::foreign},        {errc::token_regressed, Exit::foreign},
      {errc::corrupt_file, Exit::foreign},    {errc::newer_format, Exit::foreign},
      {errc::config_invalid, Exit::config},   {errc::config_unsafe, Exit::config},
      {errc::access_denied, Exit::config},    {errc::moving, Exit::config},
      {errc::not_configured, Exit::config},   {errc::no_gate, Exit::config},
      {errc::unavailable, Exit::unavailable}, {errc::closed, Exit::unavailable},
      {errc::cancelled, Exit::unavailable},
  };
  for (const auto& [error, status] : table) {
    EXPECT_EQ(program::exit_of(make_error_code(error)), status) << make_error_code(error).message();
  }
  EXPECT_EQ(program::exit_of({}), Exit::ok);
  EXPECT_EQ(program::signal_status(2), 130);
}

TEST(CliOutputStatus, SixSignalsEndAWait) {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
    EXPECT_TRUE(program::ends_a_wait(signal)) << signal;
  }
  for (const int signal : {SIGCHLD, SIGPIPE, SIGTSTP, SIGCONT, SIGWINCH, SIGALRM}) {
    EXPECT_FALSE(program::ends_a_wait(signal)) << signal;
  }
}

TEST(CliOutputStatus, ControlBytesAreEscaped) {
  const std::pair<std::string, std::string> table[] = {
      {"a b~", "a b~"},
      {"\x1F", "\\x1f"},
      {"\x7F", "\\x7f"},
      {std::string(1, '\0') + "a", "\\x00a"},
      {"\xC2\x80", "\\xc2\\x80"},
      {"\xC2\x9F", "\\xc2\\x9f"},
      {"\xC2\xA0", "\xC2\xA0"},
      {"\xC3\x84", "\xC3\x84"},
      {"\xE6\x97\xA5", "\xE6\x97\xA5"},
      {"\xFF", "\\xff"},
      {"\xC2", "\\xc2"},
  };
  for (const auto& [text, shown] : table) EXPECT_EQ(program::printable(text), shown);
}

TEST(CliOutputHint, SaysWhichWordIsWrong) {
  using program::first_word;
  program::UsageHint hint;
  hint.verbs = {"run", "hold"};
  EXPECT_EQ(words_for(hint), "a verb is missing: one of run, hold");
  hint.verb = "migrate";
  EXPECT_EQ(words_for(hint), "a verb is missing behind migrate: one of run, hold");
  hint.unexpected = {"rum"};
  EXPECT_EQ(words_for(hint), "'rum' is not a verb of migrate; did you mean 'run'?");
  hint.verb.clear();
  EXPECT_EQ(words_for(hint), "'rum' is not a verb; did you mean 'run'?");
  hint.options = {"--wait", "-q"};
  hint.unexpected = {"--wiat=3s"};
  EXPECT_EQ(words_for(hint), "'--wiat' is not an option of dlock; did you mean '--wait'?");
  hint.verb = "run";
  hint.unexpected = {"-w"};
  EXPECT_EQ(words_for(hint), "'-w' is not an option of dlock run");
  hint.unexpected = {"--wait=3s", "more"};
  EXPECT_EQ(words_for(hint), "'--wait' is an option of the verb; write: dlock run --wait=3s ...");
  hint.verbs.clear();
  hint.unexpected = {"make", "all"};
  EXPECT_EQ(words_for(hint),
            "a '--' is missing before the command; write: dlock run NAME -- make all");
  hint.has_dashes = true;
  EXPECT_EQ(words_for(hint), "'make' is one word too many");
  hint.has_dashes = false;
  hint.verb = "hold";
  EXPECT_EQ(words_for(hint), "'make' is one word too many");
  EXPECT_EQ(first_word({"--config", "f", "--store", "s", "-q", "run", "x"}), 5U);
  EXPECT_EQ(first_word({"run"}), 0U);
  EXPECT_EQ(first_word({"--store"}), 1U);
  EXPECT_EQ(first_word({"--config", "f"}), 2U);
}

}  // namespace
}  // namespace dlock::cli

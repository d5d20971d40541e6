// SPDX-License-Identifier: Apache-2.0
//
// MoveAcquireFsm step by step: where an acquire of a lock that moves goes next.
#include <gtest/gtest.h>

#include "dlock/spi/error.hpp"
#include "migration/move/move_acquire_fsm.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = MoveAcquireFsm::Action;
using Outcome = MoveAcquireFsm::Outcome;

constexpr TimePoint kStart{std::chrono::hours(1)};

Record moved() {
  Record record;
  record.gen = {5, 1};
  record.target = "t";
  record.floor = 5;
  record.plan = "p";
  record.plan_id = "0123456789abcdef";
  return record;
}

Outcome granted() {
  Outcome outcome;
  outcome.granted = true;
  return outcome;
}

Outcome sealed(const Record& record) {
  Outcome outcome;
  outcome.error = errc::moving;
  outcome.record = to_text(record);
  return outcome;
}

Outcome failed(errc error) {
  Outcome outcome;
  outcome.error = error;
  outcome.failure = make_failure(error, "why");
  return outcome;
}

RecordAnswer read(const std::optional<Record>& record) {
  RecordAnswer answer;
  answer.status = RecordStatus::done;
  if (record) answer.found = to_text(*record);
  return answer;
}

RecordAnswer unread(RecordStatus status, errc error = errc::unavailable) {
  RecordAnswer answer;
  answer.status = status;
  answer.failure = make_failure(error, "why");
  return answer;
}

MoveAcquireFsm make(bool once = false, TimePoint deadline = kNever) {
  MoveAcquireFsm::Limits limits;
  limits.once = once;
  limits.deadline = deadline;
  limits.poll = seconds(1);
  limits.connect_timeout = seconds(15);
  return MoveAcquireFsm({"a", "s", "t", "p", {"s", "t"}}, limits,
                        std::make_shared<core::migration::GateBelief>("p"));
}

/// In T's queue, or once it was granted there.
MoveAcquireFsm at_target() {
  auto client = make();
  client.begin();
  EXPECT_EQ(client.on_source(sealed(moved()), kStart, 0).what, Action::lock_target);
  return client;
}

MoveAcquireFsm at_recheck() {
  auto client = at_target();
  EXPECT_EQ(client.on_target(granted(), kStart, 0).what, Action::recheck);
  return client;
}

TEST(MoveAcquireFsm, AGrantInTheSourceIsHeldThere) {
  auto client = make();
  EXPECT_EQ(client.begin().what, Action::lock_source);
  EXPECT_EQ(client.on_source(granted(), kStart, 0).what, Action::finish);
  EXPECT_TRUE(client.held_in_source());
}

TEST(MoveAcquireFsm, AMovedLockIsHeldInTheTargetAfterTheReCheck) {
  for (const auto state : {MoveState::moved, MoveState::final_}) {
    auto record = moved();
    record.state = state;
    auto client = make();
    client.begin();
    EXPECT_EQ(client.on_source(sealed(record), kStart, 0).what, Action::lock_target);
    EXPECT_EQ(client.record(), record);
    EXPECT_EQ(client.on_target(granted(), kStart, 0).what, Action::recheck);
    EXPECT_FALSE(client.granted());
    EXPECT_EQ(client.on_recheck(read(record), true, kStart, 0).what, Action::finish);
    EXPECT_TRUE(client.held_in_target());
  }
}

TEST(MoveAcquireFsm, AReCheckThatFindsAnythingElseLeadsBack) {
  auto closing = moved();
  closing.state = MoveState::closing;
  auto other_gen = moved();
  other_gen.gen.counter = 3;
  auto other_flip = moved();
  other_flip.gen.flip = 9;
  auto other_start = moved();
  other_start.plan_id = "ffffffffffffffff";
  for (const auto& record :
       {std::optional<Record>(), std::optional(closing), std::optional(other_gen),
        std::optional(other_flip), std::optional(other_start)}) {
    auto client = at_recheck();
    EXPECT_EQ(client.on_recheck(read(record), true, kStart, 0).what, Action::lock_source);
    EXPECT_FALSE(client.granted());
  }
  auto client = at_recheck();
  auto rubbish = read(moved());
  rubbish.found = "rubbish";
  EXPECT_EQ(client.on_recheck(rubbish, true, kStart, 0).what, Action::lock_source);
}

TEST(MoveAcquireFsm, AGrantThatIsOverAfterTheReCheckIsNone) {
  auto client = at_recheck();
  EXPECT_EQ(client.on_recheck(read(moved()), false, kStart, 0).what, Action::lock_source);
  auto unanswered = at_recheck();
  EXPECT_EQ(unanswered.on_recheck(unread(RecordStatus::unavailable), false, kStart, 0).what,
            Action::lock_source);
}

TEST(MoveAcquireFsm, AClosingLockIsWaitedFor) {
  auto record = moved();
  record.state = MoveState::closing;
  auto client = make();
  client.begin();
  const auto step = client.on_source(sealed(record), kStart, 12345);
  EXPECT_EQ(step.what, Action::pause);
  EXPECT_GE(step.until, kStart + milliseconds(500));
  EXPECT_LE(step.until, kStart + seconds(1));
  EXPECT_EQ(client.on_woken(step.until).what, Action::lock_source);
}

TEST(MoveAcquireFsm, AnUnansweredReCheckIsTriedAgainWithinTheStoresPatience) {
  auto client = at_recheck();
  auto now = kStart;
  auto step = client.on_recheck(unread(RecordStatus::unknown), true, now, 0);
  int tries = 0;
  while (step.what == Action::pause) {
    ++tries;
    now = step.until;
    EXPECT_EQ(client.on_woken(now).what, Action::recheck);
    step = client.on_recheck(unread(RecordStatus::unavailable), true, now, 0);
  }
  EXPECT_GT(tries, 3);
  EXPECT_EQ(client.error(), errc::unavailable);
  EXPECT_EQ(now, kStart + seconds(15));
  EXPECT_FALSE(client.granted());
}

TEST(MoveAcquireFsm, AReCheckThatIsRefusedIsAnError) {
  auto client = at_recheck();
  client.on_recheck(unread(RecordStatus::failed, errc::access_denied), true, kStart, 0);
  EXPECT_EQ(client.error(), errc::access_denied);
}

TEST(MoveAcquireFsm, ALookWhileItWaitsInTheTargetEndsTheWaitWhenTheRecordChanged) {
  auto client = at_target();
  EXPECT_FALSE(client.on_look(read(moved())));
  EXPECT_FALSE(client.on_look(unread(RecordStatus::unavailable)));
  auto closing = next_record(moved(), MoveState::closing, 0);
  EXPECT_TRUE(client.on_look(read(closing)));
  // The wait there was ended by us: no error of the caller's.
  EXPECT_EQ(client.on_target(failed(errc::cancelled), kStart, 0).what, Action::lock_source);
  auto opened = at_target();
  EXPECT_TRUE(opened.on_look(read(std::nullopt)));
  // Granted all the same: the re-check decides.
  EXPECT_EQ(opened.on_target(granted(), kStart, 0).what, Action::recheck);
}

TEST(MoveAcquireFsm, LooksAreJitteredBelowTheirBound) {
  const auto client = at_target();
  for (const std::uint64_t dice : {std::uint64_t{0}, std::uint64_t{7}, UINT64_MAX}) {
    EXPECT_GE(client.next_look(kStart, dice), kStart + milliseconds(500));
    EXPECT_LE(client.next_look(kStart, dice), kStart + seconds(1));
  }
}

TEST(MoveAcquireFsm, TryingOnceAsksEachStoreOnce) {
  auto closing = moved();
  closing.state = MoveState::closing;
  auto client = make(true);
  client.begin();
  EXPECT_EQ(client.on_source(sealed(closing), kStart, 0).what, Action::finish);
  EXPECT_EQ(client.error(), errc::timed_out);
  auto changed = make(true);
  changed.begin();
  changed.on_source(sealed(moved()), kStart, 0);
  changed.on_target(granted(), kStart, 0);
  EXPECT_EQ(changed.on_recheck(read(closing), true, kStart, 0).what, Action::finish);
  EXPECT_EQ(changed.error(), errc::timed_out);
}

TEST(MoveAcquireFsm, CancelIsToldAtOnceAndALateGrantIsNotHeld) {
  auto client = at_target();
  EXPECT_TRUE(client.on_cancel());
  EXPECT_FALSE(client.on_cancel());
  EXPECT_EQ(client.on_target(granted(), kStart, 0).what, Action::finish);
  EXPECT_FALSE(client.granted());
  EXPECT_EQ(client.error(), errc::cancelled);
  auto rechecking = at_recheck();
  EXPECT_TRUE(rechecking.on_closed());
  EXPECT_EQ(rechecking.on_recheck(read(moved()), true, kStart, 0).what, Action::finish);
  EXPECT_FALSE(rechecking.granted());
  EXPECT_EQ(rechecking.error(), errc::closed);
}

TEST(MoveAcquireFsm, TheDeadlineIsToldByTheStoreThatWaitsOrByUsInBetween) {
  auto client = at_target();
  EXPECT_FALSE(client.on_deadline());
  auto rechecking = at_recheck();
  EXPECT_TRUE(rechecking.on_deadline());
  EXPECT_EQ(rechecking.error(), errc::unavailable) << "the store has not answered";
  auto closing = moved();
  closing.state = MoveState::closing;
  auto pausing = make(false, kStart + seconds(3));
  pausing.begin();
  pausing.on_source(sealed(closing), kStart, 0);
  EXPECT_EQ(pausing.on_woken(kStart + seconds(3)).what, Action::finish);
  EXPECT_EQ(pausing.error(), errc::timed_out);
}

TEST(MoveAcquireFsm, ErrorsOfAStoreAreTheCallersErrors) {
  auto client = make();
  client.begin();
  client.on_source(failed(errc::timed_out), kStart, 0);
  EXPECT_EQ(client.error(), errc::timed_out);
  auto target = at_target();
  target.on_target(failed(errc::config_unsafe), kStart, 0);
  EXPECT_EQ(target.error(), errc::config_unsafe);
  EXPECT_EQ(target.failure().text, "why");
}

TEST(MoveAcquireFsm, ARecordThatIsNotOursIsRefusedWithTheLineToWrite) {
  auto record = moved();
  record.target = "elsewhere";
  auto client = make();
  client.begin();
  client.on_source(sealed(record), kStart, 0);
  EXPECT_EQ(client.error(), errc::not_configured);
  EXPECT_NE(client.failure().text.find("migrate: { from: s, to: elsewhere, plan: p }"),
            std::string::npos)
      << client.failure().text;
  record = moved();
  record.plan = "q";
  auto other_plan = make();
  other_plan.begin();
  other_plan.on_source(sealed(record), kStart, 0);
  EXPECT_EQ(other_plan.error(), errc::moving);
  auto rubbish = make();
  rubbish.begin();
  auto outcome = sealed(moved());
  outcome.record = "dlock-move9";
  rubbish.on_source(outcome, kStart, 0);
  EXPECT_EQ(rubbish.error(), errc::protocol);
}

// By a FINAL gate the source is not asked: its floor is above every flip that came before.
TEST(MoveAcquireFsm, ByAFinalGateAPlaceThatAnOlderFlipHasClosedIsOpened) {
  Gate gate;
  gate.state = GateState::final_;
  gate.version = 3;
  gate.target = "t";
  gate.floor = 12;
  gate.plan = "p";
  gate.plan_id = "0123456789abcdef";
  for (const std::uint64_t flip : {11U, 12U, 13U}) {
    const auto belief = std::make_shared<GateBelief>("p");
    std::string why;
    ASSERT_TRUE(belief->learn(to_text(gate), why)) << why;
    MoveAcquireFsm client({"a", "s", "t", "p", {"s", "t"}}, {}, belief);
    EXPECT_EQ(client.begin().what, Action::lock_target);
    auto closed = moved();
    closed.gen = {flip, 1};
    closed.target = "s";
    EXPECT_EQ(client.on_target(sealed(closed), kStart, 0).what,
              flip <= gate.floor ? Action::open_target : Action::finish)
        << flip;
  }
}

}  // namespace
}  // namespace dlock::core::migration

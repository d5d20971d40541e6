// SPDX-License-Identifier: Apache-2.0
//
// A plan that governs its route's patterns by a gate, under virtual time: each step over all locks,
// those too that nobody has listed.
#include <gtest/gtest.h>

#include "migration/gate.hpp"
#include "migration/move/plan_coordinator.hpp"
#include "migration/move/survey.hpp"
#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::Gate;
using core::migration::GateState;
using core::migration::Goal;
using core::migration::Ledger;
using core::migration::MoveState;
using core::migration::Plan;
using core::migration::PlanCoordinator;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Report = PlanCoordinator::Report;

/// Programs of the plan's route, and commands.
class GateTest : public testing::Test {
 protected:
  ~GateTest() override {
    for (const auto& store : programs_) two.close(store);
    two.run_for(seconds(60));
  }
  GateTest() {
    plan.name = "p";
    plan.id = "00000000000000aa";
    plan.from = "s";
    plan.to = "t";
    plan.leased_target = false;
    plan.patterns = {"a", "o/**"};
    two.plan = plan;
    two.gate = std::make_shared<core::migration::GateBelief>("p");
    for (const auto* const list : {"plans-out", "plans-in"}) {
      for (const auto& server : {two.server_s, two.server_t})
        server->set_note(list, core::migration::list_text({"p1"}), "");
    }
    EXPECT_FALSE(publish(plan).error);
  }

  Plan another_plan(const std::string& name, const std::string& id,
                    std::vector<std::string> patterns) const {
    auto other = plan;
    other.name = name;
    other.id = id;
    other.patterns = std::move(patterns);
    return other;
  }
  /// From where the plan leads to.
  Plan plan_back(const std::string& name, const std::string& id) const {
    auto back = another_plan(name, id, plan.patterns);
    std::swap(back.from, back.to);
    return back;
  }
  /// What was S is T now, for all that is done here.
  void swap_ends() {
    std::swap(two.s, two.t);
    std::swap(two.server_s, two.server_t);
  }

  Failure publish(const Plan& one) {
    Ledger ledger(two.s, two.t);
    return two.run(ledger.publish(one));
  }

  /// What it came to is there when time has passed.
  std::shared_ptr<std::optional<Report>> begin(Goal goal, PlanCoordinator::Options options = {}) {
    const auto by = std::make_shared<PlanCoordinator>(two.s, two.t, plan, options);
    return two.begin(by->drive_all(goal), by);
  }
  Report take(Goal goal, PlanCoordinator::Options options = {}) {
    const auto result = begin(goal, options);
    two.run_for(milliseconds(50));
    if (*result) return **result;
    ADD_FAILURE() << "it waits";
    return {};
  }
  void expect_done(const Report& report) {
    EXPECT_FALSE(report.refusal) << report.refusal->text;
    for (const auto& step : report.steps) {
      EXPECT_EQ(step.verdict, Verdict::done) << step.name << ": " << step.text;
    }
  }
  void certify() {
    const auto gate = this->gate();
    ASSERT_TRUE(gate);
    auto home = plan;
    home.floor = gate->floor;
    Ledger ledger(two.s, two.t);
    EXPECT_FALSE(two.run(ledger.certify(home)).error);
  }

  std::optional<Gate> gate() {
    return core::migration::parse_gate(two.server_s->note(core::migration::gate_key(gate_of_)));
  }
  GateState state() { return gate().value_or(Gate()).state; }

  using Got = std::shared_ptr<TwoStores::Outcome>;
  Got expect_in(const std::string& store, const std::string& name) {
    auto got = two.acquire_now(name);
    EXPECT_EQ(where(got->handle), store) << name << ": " << got->diagnostics.server_text;
    return rises(name, got);
  }
  Got rises(const std::string& name, Got got) {
    if (!got->handle) return got;
    EXPECT_GT(*got->handle.token(), last_[name]) << name;
    last_[name] = *got->handle.token();
    return got;
  }

  /// Has just been started.
  std::shared_ptr<core::Store> program_of_t() {
    programs_.push_back(two.make_store("t", two.server_name_t()));
    return programs_.back();
  }

  TwoStores two;
  Plan plan;
  std::vector<std::shared_ptr<core::Store>> programs_;
  std::string gate_of_ = "p";

 private:
  std::map<std::string, std::uint64_t> last_;
};

TEST_F(GateTest, NamesOfLaterGoToTheTargetWhenItHasTurnedAndComeBackWithIt) {
  expect_in("s", "a");
  expect_in("s", "o/1");
  EXPECT_EQ(state(), GateState::open);
  expect_done(take(Goal::advance));
  EXPECT_EQ(state(), GateState::turned);
  EXPECT_FALSE(two.record("o/1")) << "an idle name needs nothing";
  for (const auto* const name : {"a", "o/1", "o/2", "o/3/4"}) {
    expect_in("t", name);
    expect_in("t", name);
    ASSERT_TRUE(two.record(name));
    EXPECT_EQ(two.record(name)->state, MoveState::moved);
  }
  const auto back = take(Goal::rollback);
  expect_done(back);
  EXPECT_EQ(back.steps.size(), 4U);
  for (const auto* const name : {"a", "o/1", "o/2", "o/3/4", "o/5"}) expect_in("s", name);
  expect_done(take(Goal::advance));
  for (const auto* const name : {"a", "o/1", "o/2", "o/3/4", "o/5"}) expect_in("t", name);
}

TEST_F(GateTest, WhoeverHoldsOrWaitsFromBeforeIsWaitedFor) {
  auto first = expect_in("s", "o/1");
  auto second = two.acquire_now("o/1");
  auto forward = begin(Goal::advance);
  two.run_for(seconds(1));
  ASSERT_FALSE(*forward);
  EXPECT_EQ(state(), GateState::turned);
  auto third = two.acquire("o/1");
  two.run_for(seconds(1));
  two.let_go(*first);
  ASSERT_EQ(where(second->handle), "s") << "it waited from before";
  EXPECT_FALSE(third->handle);
  rises("o/1", second);
  second->handle = LockHandle();
  two.run_for(milliseconds(50));
  ASSERT_TRUE(*forward);
  expect_done(**forward);
  ASSERT_EQ(where(third->handle), "t");
  rises("o/1", third);
}

TEST_F(GateTest, AClaimUnderTheTurnedGateThatHasToWaitSealsWhenItIsGranted) {
  auto stranger = two.acquire_now_in(two.s, "o/1");
  const auto forward = take(Goal::advance, {.deadline = two.env().now()});
  ASSERT_EQ(forward.steps.size(), 1U);
  EXPECT_EQ(forward.steps[0].verdict, Verdict::waiting);
  auto waits = two.acquire("o/1");
  two.run_for(seconds(1));
  EXPECT_FALSE(waits->handle);
  stranger->handle = LockHandle();
  two.run_for(milliseconds(50));
  EXPECT_EQ(where(waits->handle), "t");
  ASSERT_TRUE(two.record("o/1"));
}

TEST_F(GateTest, FinishTellsWhoDoesNotTakePart) {
  auto stranger = two.acquire_now_in(two.s, "o/1");
  const auto waiting = take(Goal::finish, {.deadline = two.env().now()});
  ASSERT_EQ(waiting.steps.size(), 1U);
  EXPECT_EQ(waiting.steps[0].verdict, Verdict::waiting);
  ASSERT_EQ(waiting.strangers.size(), 1U);
  EXPECT_EQ(waiting.strangers[0].lock, "o/1");
  EXPECT_FALSE(waiting.strangers[0].waits);
  EXPECT_FALSE(waiting.finished);
  two.let_go(*stranger);
  // One that waits behind the record, as those do that do not know dlock.
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  two.server_s->claim("o/1", owner("curator"), true, 0, {}, [] {});
  const auto refused = take(Goal::finish);
  ASSERT_TRUE(refused.refusal);
  EXPECT_NE(refused.refusal->text.find("--yes"), std::string::npos);
  ASSERT_EQ(refused.strangers.size(), 1U);
  EXPECT_TRUE(refused.strangers[0].waits);
  EXPECT_EQ(state(), GateState::turned);
  two.server_s->release("o/1", "curator");
  const auto done = take(Goal::finish);
  expect_done(done);
  EXPECT_TRUE(done.finished);
  EXPECT_EQ(state(), GateState::final_);
}

TEST_F(GateTest, WhoKnowsTheTargetAloneIsRefusedUntilTheCertificateAndIsAboveAllTokensOfTheSource) {
  std::uint64_t last = 0;
  for (int i = 0; i < 9; ++i) last = *expect_in("s", "o/idle")->handle.token();
  const auto refused = [&] {
    auto got = two.acquire_now_in(program_of_t(), "o/idle", milliseconds(0));
    EXPECT_EQ(got->ec, errc::config_unsafe) << got->ec.message();
  };
  refused();
  expect_done(take(Goal::advance));
  refused();
  expect_done(take(Goal::finish));
  refused();
  certify();
  auto got = two.acquire_now_in(program_of_t(), "o/idle", milliseconds(0));
  ASSERT_TRUE(got->handle) << got->ec.message() << got->diagnostics.server_text;
  EXPECT_GT(*got->handle.token(), last);
  two.let_go(*got);
  expect_in("t", "o/idle");
  expect_in("t", "o/new");
  EXPECT_FALSE(two.record("o/idle")) << "the source is not asked any more";
}

TEST_F(GateTest, WhoHasLastReadOfPlansLongAgoDoesNotBelieveAGrantByThat) {
  const auto program = program_of_t();
  const auto early = program_of_t();
  const auto as = [&](const std::shared_ptr<core::Store>& by, const std::string& name) {
    auto got = two.acquire_in(by, name, milliseconds(0));
    two.run_for(milliseconds(20));
    return got;
  };
  for (const auto& one : {program, early}) ASSERT_TRUE(as(one, "other")->handle);
  two.run_for(seconds(11));
  const auto second = another_plan("q", "00000000000000bb", {"later/**"});
  ASSERT_FALSE(publish(second).error);
  const auto refused = as(program, "later/1");
  EXPECT_EQ(refused->ec, errc::config_unsafe) << refused->diagnostics.server_text;
  EXPECT_FALSE(two.server_t->inspect("later/1", two.env().now()).held) << "given back";

  // And the tokens are above what the source has given.
  std::uint64_t last = 0;
  for (int i = 0; i < 9; ++i) last = *expect_in("s", "o/idle")->handle.token();
  expect_done(take(Goal::finish));
  certify();
  const auto got = as(early, "o/idle");
  ASSERT_TRUE(got->handle) << got->ec.message() << got->diagnostics.server_text;
  EXPECT_GT(*got->handle.token(), last);
}

// The plan has come, gone back and come to its end since its program has read of plans.
TEST_F(GateTest, NobodyIsRefusedForARecordByWhatWasReadBeforeThePlanCameToItsEnd) {
  const auto program = program_of_t();
  Ledger ledger(two.s, two.t);
  expect_done(take(Goal::rollback, {.withdraw = true}));
  EXPECT_FALSE(two.run(ledger.withdraw(plan)).error);
  auto got = two.acquire_now_in(program, "other", milliseconds(0));
  ASSERT_TRUE(got->handle);
  plan.id = "00000000000000bb";
  two.plan = plan;
  ASSERT_FALSE(publish(plan).error);
  std::uint64_t last = 0;
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  expect_done(take(Goal::rollback));
  for (int i = 0; i < 3; ++i) last = *expect_in("s", "o/1")->handle.token();
  expect_done(take(Goal::finish));
  certify();
  ASSERT_NE(two.server_t->record("o/1"), "");
  got = two.acquire_in(program, "o/1", milliseconds(0));
  two.run_for(milliseconds(20));
  ASSERT_TRUE(got->handle) << got->ec.message() << got->diagnostics.server_text;
  EXPECT_GT(*got->handle.token(), last);
}

TEST_F(GateTest, WhoKnowsTheTargetAloneOpensWhatARollbackHasClosedThere) {
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  expect_done(take(Goal::rollback));
  EXPECT_NE(two.server_t->record("o/1"), "") << "closed by the rollback";
  expect_done(take(Goal::finish));
  certify();
  auto got = two.acquire_now_in(program_of_t(), "o/1", milliseconds(0));
  ASSERT_TRUE(got->handle) << got->ec.message() << got->diagnostics.server_text;
  rises("o/1", got);
  EXPECT_EQ(two.server_t->record("o/1"), "");
}

TEST_F(GateTest, AProgramOfTheRouteOpensItToo) {
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  expect_done(take(Goal::rollback));
  expect_done(take(Goal::finish));
  expect_in("t", "o/1");
}

TEST_F(GateTest, AFinishThatIsBesideARollbackIsRefused) {
  auto held = expect_in("s", "o/1");
  auto finish = begin(Goal::finish);
  two.run_for(milliseconds(50));
  EXPECT_EQ(state(), GateState::turned);
  auto back = begin(Goal::rollback);
  two.run_for(milliseconds(50));
  ASSERT_TRUE(*back);
  expect_done(**back);
  EXPECT_EQ(state(), GateState::open);
  auto forward = begin(Goal::advance);
  two.run_for(milliseconds(50));
  EXPECT_EQ(state(), GateState::turned) << "as the finish has seen it, and another turn";
  held->handle = LockHandle();
  two.run_for(milliseconds(100));
  ASSERT_TRUE(*forward);
  expect_done(**forward);
  ASSERT_TRUE(*finish);
  EXPECT_FALSE((*finish)->finished);
  EXPECT_EQ(state(), GateState::turned);
}

// A command takes many names at once, and what one of them learns of the gate the others know at
// once: what one has decided by the gate of before it does not write under the one of now.
TEST_F(GateTest, WhatWasDecidedUnderOneGateIsNotWrittenUnderAnother) {
  expect_done(take(Goal::advance));
  const auto held = expect_in("t", "o/1");
  const auto belief = std::make_shared<core::migration::GateBelief>("p");
  const auto turn = [&](GateState to) {
    const auto key = core::migration::gate_key("p");
    const auto text = to_text(core::migration::turned_to(*gate(), to, two.env().wall_clock_ms()));
    two.server_s->set_note(key, two.server_s->note(key), text);
    std::string why;
    EXPECT_TRUE(belief->learn(text, why)) << why;
  };
  turn(GateState::open);
  core::migration::Coordinator::Options options;
  options.gate = belief;
  options.is_for_all = true;
  const auto back = two.take(
      Goal::rollback, "o/1",
      std::make_shared<core::migration::Coordinator>(two.s, two.t, plan, std::move(options)));
  two.run_for(milliseconds(50));
  ASSERT_FALSE(*back) << "it waits for the holder";
  ASSERT_EQ(two.record("o/1")->state, MoveState::closing);
  turn(GateState::turned);
  held->handle = LockHandle();
  two.run_for(milliseconds(50));
  ASSERT_TRUE(*back);
  EXPECT_NE((*back)->verdict, Verdict::done);
  ASSERT_TRUE(two.record("o/1")) << "opened behind a turned gate";
  expect_in("t", "o/2");
}

TEST_F(GateTest, AWithdrawnPlanSealsNothingAndMakesRoomForAnother) {
  expect_done(take(Goal::advance));
  auto held = expect_in("t", "o/1");
  expect_in("t", "o/2");
  auto back = begin(Goal::rollback, {.withdraw = true});
  two.run_for(seconds(1));
  ASSERT_FALSE(*back);
  EXPECT_EQ(state(), GateState::ended);
  EXPECT_TRUE(take(Goal::advance).refusal);
  expect_in("s", "o/3");
  held->handle = LockHandle();
  two.run_for(milliseconds(50));
  ASSERT_TRUE(*back);
  expect_done(**back);
  ASSERT_TRUE((*back)->withdrawn);
  Ledger ledger(two.s, two.t);
  EXPECT_FALSE(two.run(ledger.withdraw(plan)).error);
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) expect_in("s", name);
  const auto version = gate()->version;
  auto again = plan;
  again.id = "00000000000000bb";
  EXPECT_FALSE(publish(again).error);
  EXPECT_EQ(gate()->plan_id, again.id);
  EXPECT_EQ(gate()->version, version + 1);
  EXPECT_EQ(state(), GateState::open);
  plan = again;
  expect_done(take(Goal::advance));
  for (const auto* const name : {"o/1", "o/4", "o/5"}) expect_in("t", name);
}

TEST_F(GateTest, APlanBackMovesNamesThatTheFirstHasNeverSeen) {
  expect_in("s", "o/1");
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  expect_in("t", "o/2");
  expect_done(take(Goal::finish));
  certify();
  expect_in("t", "o/3");
  expect_in("t", "o/1");

  const auto once_more = another_plan("q", "00000000000000cc", plan.patterns);
  EXPECT_EQ(publish(once_more).error, errc::config_unsafe) << "programs of the first lock in t";

  const auto back = plan_back("b", "00000000000000dd");
  Ledger ledger(two.t, two.s);
  EXPECT_FALSE(two.run(ledger.publish(back)).error);
  swap_ends();
  const auto first_plan = plan;
  const auto first_gate = two.gate;
  plan = two.plan = back;
  two.gate = std::make_shared<core::migration::GateBelief>("b");
  // A program that has the first plan's route still is one that knows the target alone.
  const auto of_the_first = [&](const std::string& name) {
    const auto gate = std::exchange(two.gate, first_gate);
    two.plan = first_plan;
    std::swap(two.s, two.t);
    auto got = two.acquire(name, seconds(20));
    std::swap(two.s, two.t);
    two.plan = back;
    two.gate = gate;
    return got;
  };
  expect_in("t", "o/1");
  const auto waits = expect_in("t", "o/2");
  const auto queued = of_the_first("o/2");
  const auto moves = begin(Goal::advance);
  two.run_for(seconds(1));
  waits->handle = LockHandle();
  two.run_for(milliseconds(50));
  ASSERT_EQ(where(queued->handle), "t") << "it waited from before";
  rises("o/2", queued);
  queued->handle = LockHandle();
  two.run_for(milliseconds(50));
  ASSERT_TRUE(*moves);
  expect_done(**moves);
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) expect_in("s", name);
  for (const auto* const name : {"o/1", "o/2"}) {
    const auto stopped = of_the_first(name);
    two.run_for(seconds(21));
    EXPECT_EQ(stopped->ec, errc::moving) << name << where(stopped->handle);
    EXPECT_NE(stopped->diagnostics.server_text.find("plan 'b'"), std::string::npos)
        << stopped->diagnostics.server_text;
  }
  expect_done(take(Goal::rollback));
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) expect_in("t", name);
  expect_done(take(Goal::finish));
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4", "o/5"}) expect_in("s", name);
  swap_ends();
}

// The record that a rollback of the first plan has left in the target is older than its
// certificate.
TEST_F(GateTest, APlanBackPassesWhatARollbackOfTheFirstHasLeftClosed) {
  expect_done(take(Goal::advance));
  expect_in("t", "o/1");
  expect_in("t", "o/2");
  expect_done(take(Goal::rollback));
  expect_done(take(Goal::finish));
  certify();
  ASSERT_NE(two.server_t->record("o/1"), "");
  const auto back = plan_back("b", "00000000000000dd");
  Ledger ledger(two.t, two.s);
  EXPECT_FALSE(two.run(ledger.publish(back)).error);
  two.run_for(seconds(11));
  // Programs that have just been started know of the certificate.
  swap_ends();
  programs_.push_back(two.s);
  two.s = program_of_t();
  plan = two.plan = back;
  two.gate = std::make_shared<core::migration::GateBelief>("b");
  expect_done(take(Goal::advance));
  expect_in("s", "o/1");
  expect_done(take(Goal::rollback));
  expect_in("t", "o/1");
  expect_done(take(Goal::rollback, {.withdraw = true}));
  expect_in("t", "o/2");
}

// From s to t and back, to a third store and back, where nobody uses it at home in between: the
// first plan's record stands in s all the time, and leads to t.
TEST_F(GateTest, WhatFinishedPlansHaveLeftIsPassedOnTheWayHomeFromAThirdStore) {
  const auto s = two.s;
  const auto t = two.t;
  const auto server_s = two.server_s;
  const auto third = memory::SharedStore::get("third of three");
  const auto u = two.make_store("u", "third of three");
  programs_.push_back(u);
  const auto go = [&](const std::string& name, const std::shared_ptr<core::Store>& from,
                      const std::shared_ptr<core::Store>& to) {
    plan.name = name;
    plan.id = "00000000000000" + name;
    plan.from = from->name();
    plan.to = to->name();
    two.plan = plan;
    two.s = from;
    two.t = to;
    const auto server = [&](const std::shared_ptr<core::Store>& store) {
      return store == u   ? third
             : store == s ? server_s
                          : memory::SharedStore::get(two.server_name_t());
    };
    two.server_s = server(from);
    two.server_t = server(to);
    two.gate = std::make_shared<core::migration::GateBelief>(name);
    gate_of_ = name;
    EXPECT_FALSE(publish(plan).error);
    expect_done(take(Goal::advance));
  };
  const auto end = [&] {
    expect_done(take(Goal::finish));
    certify();
    two.run_for(seconds(11));
  };
  expect_done(take(Goal::advance));
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) expect_in("t", name);
  end();
  go("b2", t, s);
  // One that a rollback has closed in s.
  expect_in("s", "o/2");
  expect_done(take(Goal::rollback));
  expect_done(take(Goal::advance));
  end();
  go("b3", s, u);
  end();
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) {
    ASSERT_NE(server_s->record(name), "") << name;
  }
  go("b4", u, s);
  const auto places = two.run(core::migration::taken_places(two.t, "u", {"o/1", "o/2"}));
  ASSERT_TRUE(places.value);
  EXPECT_TRUE(places.value->empty()) << places.value->front();
  expect_in("s", "o/1");
  expect_in("s", "o/2");
  // A command meets it, forward, and on the way back of one whose program was killed when it had
  // sealed it.
  const auto by = std::make_shared<PlanCoordinator>(two.s, two.t, plan, PlanCoordinator::Options());
  expect_done(two.run(by->take(Goal::advance, {"o/3"})));
  EXPECT_EQ(server_s->record("o/3"), "");
  two.set_record("o/4", core::migration::moved_record(*gate(), 1, two.env().wall_clock_ms()));
  expect_done(take(Goal::rollback));
  for (const auto* const name : {"o/1", "o/2", "o/3", "o/4"}) expect_in("u", name);
  two.s = s;
  two.t = t;
  two.server_s = server_s;
}

TEST_F(GateTest, PlansWhosePatternsMeetAreRefused) {
  auto other = another_plan("q", "00000000000000cc", {"*/1"});
  EXPECT_EQ(publish(other).error, errc::config_unsafe);
  other.patterns = {"n/**"};
  EXPECT_FALSE(publish(other).error);
}

TEST_F(GateTest, ByNameOneLockMovesAndTheOthersStay) {
  expect_in("s", "o/1");
  const auto by = std::make_shared<PlanCoordinator>(two.s, two.t, plan, PlanCoordinator::Options{});
  std::vector<std::string> names{"o/1"};
  const auto report = two.run(by->take(Goal::advance, names));
  expect_done(report);
  expect_in("t", "o/1");
  expect_in("s", "o/2");
  EXPECT_EQ(state(), GateState::open);
  expect_done(take(Goal::advance));
  const auto back = two.run(by->take(Goal::rollback, names));
  ASSERT_EQ(back.steps.size(), 1U);
  EXPECT_EQ(back.steps[0].verdict, Verdict::refused) << "the gate has turned";
}

TEST(Gate, IsReadBackAsItWasWritten) {
  Gate gate;
  gate.state = GateState::turned;
  gate.version = 7;
  gate.target = "redis";
  gate.floor = 12;
  gate.max_lease = milliseconds(30'000);
  gate.plan = "billing";
  gate.plan_id = "0123456789abcdef";
  gate.since_ms = 1'763'770'000'000;
  EXPECT_EQ(core::migration::parse_gate(to_text(gate)), gate);
  const auto text = to_text(gate);
  std::string why;
  EXPECT_FALSE(core::migration::parse_gate(text + " ", &why));
  EXPECT_FALSE(core::migration::parse_gate(text.substr(1), &why));
  EXPECT_FALSE(core::migration::parse_gate("", &why));
  auto other = text;
  other.replace(other.find("TURNED"), 6, "SPUN");
  EXPECT_FALSE(core::migration::parse_gate(other, &why));
  EXPECT_NE(why.find("OPEN, TURNED, FINAL, ENDED"), std::string::npos);
}

/// FINAL, of that plan.
std::string final_text(const std::string& plan) {
  Gate gate;
  gate.state = GateState::final_;
  gate.version = 3;
  gate.target = "redis";
  gate.floor = 12;
  gate.plan = plan;
  gate.plan_id = "0123456789abcdef";
  return to_text(gate);
}

TEST(Gate, WhatIsBelievedIsOfItsOwnPlan) {
  core::migration::GateBelief belief("billing");
  std::string why;
  EXPECT_FALSE(belief.learn(final_text("shipping"), why));
  EXPECT_EQ(why, "it is of plan 'shipping'");
  EXPECT_TRUE(belief.text().empty());
}

TEST(Gate, FinalIsNeverUnlearnt) {
  core::migration::GateBelief belief("billing");
  std::string why;
  ASSERT_TRUE(belief.learn(final_text("billing"), why)) << why;
  EXPECT_TRUE(belief.learn("", why));
  EXPECT_TRUE(belief.is(GateState::final_)) << "an old reading that comes late";
  EXPECT_FALSE(belief.is_due(TimePoint(std::chrono::hours(9))));
}

TEST(Gate, IsLookedAtAgainWhenItIsOld) {
  core::migration::GateBelief belief("billing");
  const TimePoint now(std::chrono::hours(1));
  EXPECT_TRUE(belief.is_due(now));
  EXPECT_FALSE(belief.is_due(now + core::migration::kGateAge - milliseconds(1)));
  EXPECT_TRUE(belief.is_due(now + core::migration::kGateAge));
}

TEST(Gate, WhatIsSealedUnderItIsTheRecordOfAMove) {
  Gate gate;
  gate.state = GateState::turned;
  gate.target = "t";
  gate.plan = "p";
  gate.plan_id = "0123456789abcdef";
  const auto check = core::migration::check_of("p", to_text(gate), gate, 5);
  auto text = check->seal;
  for (auto at = text.find(kTokenPlace); at != std::string::npos; at = text.find(kTokenPlace)) {
    text.replace(at, kTokenPlace.size(), "41");
  }
  EXPECT_EQ(core::migration::parse_record(text), core::migration::moved_record(gate, 41, 5));
}

TEST_F(GateTest, ANamesakeThatLeadsTheOtherWayIsRefusedAndWritesNothing) {
  const auto text = two.server_t->note("plan/p");
  auto back = plan_back(plan.name, "00000000000000cc");
  Ledger ledger(two.t, two.s);
  for (const std::string pattern : {"a", "elsewhere/**"}) {
    back.patterns = {pattern};
    EXPECT_EQ(two.run(ledger.objection(back)).error, errc::config_unsafe) << pattern;
    EXPECT_EQ(two.run(ledger.publish(back)).error, errc::config_unsafe) << pattern;
    EXPECT_EQ(two.server_t->note("plan/p"), text);
  }
  expect_done(take(Goal::finish));
  certify();
  EXPECT_EQ(two.run(ledger.publish(back)).error, errc::config_unsafe) << "its name is used up";
}

// A command that was stopped for long ends the start that it knows of, and no other.
TEST_F(GateTest, ALateWithdrawalLeavesALaterStartInEffect) {
  Ledger ledger(two.s, two.t);
  const auto first = plan;
  expect_done(take(Goal::rollback, {.withdraw = true}));
  EXPECT_FALSE(two.run(ledger.withdraw(first)).error);
  plan.id = "00000000000000cc";
  EXPECT_FALSE(publish(plan).error);
  EXPECT_FALSE(two.run(ledger.withdraw(first)).error);
  const auto found = two.run(ledger.find("p", true));
  EXPECT_TRUE(found.listed && found.listed_in_target && found.known_in_target);
  EXPECT_EQ(found.plan, plan);
}

// A start that was stopped for long goes on when its plan has been withdrawn.
TEST_F(GateTest, WhatALateStartHasWrittenOfAWithdrawnPlanIsInNobodysWay) {
  Ledger ledger(two.s, two.t);
  const auto text = to_text(plan);
  expect_done(take(Goal::rollback, {.withdraw = true}));
  EXPECT_FALSE(two.run(ledger.withdraw(plan)).error);
  two.server_s->set_note("plan/p", "", text);
  two.server_t->set_note("plan/p", "", text);
  const auto list = two.server_t->note("plans-in");
  two.server_t->set_note("plans-in", list, core::migration::list_text({started_entry(plan)}));
  const auto out = two.server_s->note("plans-out");
  two.server_s->set_note("plans-out", out, core::migration::list_text({pending_entry(plan)}));
  plan.id = "00000000000000cc";
  EXPECT_FALSE(publish(plan).error);
  const auto found = two.run(ledger.find("p", true));
  EXPECT_TRUE(found.listed && found.listed_in_target);
  EXPECT_EQ(found.plan->id, plan.id);
  EXPECT_EQ(two.server_t->note("plans-in"), core::migration::list_text({started_entry(plan)}));
}

// Who starts the plan once more, and is refused, does not end what another has started meanwhile.
TEST_F(GateTest, AStartThatIsGivenUpLeavesTheOthersInEffect) {
  auto namesake = plan;
  namesake.patterns = {"elsewhere/**"};
  EXPECT_EQ(publish(namesake).error, errc::config_unsafe);
  Ledger ledger(two.s, two.t);
  const auto found = two.run(ledger.find("p", true));
  EXPECT_TRUE(found.listed && found.listed_in_target);
  // One that has not come to its end is not in effect, and keeps others with its names away.
  auto other = another_plan("q", "00000000000000cc", {"n/**"});
  two.server_s->set_note("plan/q", "", to_text(other));
  const auto list = two.server_s->note("plans-out");
  two.server_s->set_note("plans-out", list, list + "\n~q@00000000000000cc");
  EXPECT_FALSE(two.run(ledger.find("q", false)).listed);
  const auto third = another_plan("r", "00000000000000dd", other.patterns);
  EXPECT_EQ(publish(third).error, errc::config_unsafe);
  EXPECT_FALSE(publish(other).error);
  EXPECT_TRUE(two.run(ledger.find("q", false)).listed);
}

}  // namespace
}  // namespace dlock::tests

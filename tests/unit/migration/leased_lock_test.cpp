// SPDX-License-Identifier: Apache-2.0
//
// Locks under a leased gate: in which stores a lock is acquired, what its hold rests on, and how it
// moves when the gate turns.
#include <gtest/gtest.h>

#include "tests/support/leased_fleet.hpp"

namespace dlock::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = LeasedFleet::State;

class LeasedLock : public testing::Test {
 protected:
  bool is_free(const std::shared_ptr<memory::SharedStore>& server) {
    return !server->holder_token("a").has_value();
  }
  bool is_in_source() { return !is_free(fleet_.server_s); }
  bool is_in_target() { return !is_free(fleet_.server_t); }

  LeasedFleet fleet_;
};

TEST_F(LeasedLock, IsInTheStoresThatTheGateNames) {
  struct Case {
    State state;
    bool in_source;
    bool in_target;
    const char* shown;
  };
  const Case cases[] = {
      {State::source, true, false, "s"}, {State::source_then_target, true, true, "s"},
      {State::target, false, true, "t"}, {State::target_then_source, true, true, "t"},
      {State::source, true, false, "s"}, {State::ended, true, false, "s"}};
  std::uint64_t last = 0;
  for (const auto& one : cases) {
    SCOPED_TRACE(to_string(one.state));
    fleet_.turn(one.state);
    auto program = fleet_.program();
    auto got = fleet_.acquire(program, "a");
    ASSERT_TRUE(got->handle) << got->ec.message() << got->diagnostics.server_text;
    EXPECT_EQ(is_in_source(), one.in_source);
    EXPECT_EQ(is_in_target(), one.in_target);
    EXPECT_EQ(got->handle.store(), one.shown);
    EXPECT_GT(*got->handle.token(), fleet_.gate().floor);
    EXPECT_LE(*got->handle.token(), fleet_.gate().ceiling);
    EXPECT_EQ(got->handle.remaining().has_value(), one.in_source != one.in_target);
    EXPECT_GE(*got->handle.token(), last);
    last = *got->handle.token();
    fleet_.let_go(*got);
    EXPECT_FALSE(is_in_source());
    EXPECT_FALSE(is_in_target());
  }
}

TEST_F(LeasedLock, AHoldLastsThroughAllTurns) {
  auto program = fleet_.program();
  auto got = fleet_.acquire(program, "a");
  ASSERT_TRUE(got->handle);
  const auto token = got->handle.token();
  std::vector<HandleState> told;
  got->handle.on_state([&](HandleState state, LossReason) { told.push_back(state); });
  const std::pair<State, std::string> turns[] = {{State::source_then_target, "both"},
                                                 {State::source, "s"},
                                                 {State::source_then_target, "both"},
                                                 {State::target, "t"},
                                                 {State::target_then_source, "both"},
                                                 {State::target, "t"},
                                                 {State::target_then_source, "both"},
                                                 {State::source, "s"},
                                                 {State::source_then_target, "both"},
                                                 {State::target, "t"},
                                                 {State::final_, "t"}};
  for (const auto& [state, place] : turns) {
    SCOPED_TRACE(to_string(state));
    fleet_.turn_in_time(state);
    EXPECT_EQ(is_in_source(), place != "t");
    EXPECT_EQ(is_in_target(), place != "s");
    EXPECT_EQ(got->handle.state(), HandleState::held);
  }
  EXPECT_EQ(got->handle.token(), token);
  EXPECT_TRUE(told.empty());
  fleet_.let_go(*got);
  EXPECT_FALSE(is_in_source());
  EXPECT_FALSE(is_in_target());
}

TEST_F(LeasedLock, AHoldInOneStoreEndsWhenTheGateIsNotConfirmed) {
  auto program = fleet_.program();
  auto got = fleet_.acquire(program, "a");
  ASSERT_TRUE(got->handle);
  auto other = fleet_.program();
  std::vector<std::pair<HandleState, LossReason>> told;
  got->handle.on_state([&](HandleState state, LossReason why) { told.emplace_back(state, why); });
  const auto last_read = fleet_.env().now();
  fleet_.lose_gate();
  fleet_.run_for(seconds(2));
  EXPECT_EQ(got->handle.state(), HandleState::suspect);
  fleet_.run_for(seconds(2));
  EXPECT_EQ(got->handle.state(), HandleState::lost);
  EXPECT_EQ(got->handle.loss_reason(), LossReason::gate_not_confirmed);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told.front().first, HandleState::suspect);
  EXPECT_LE(fleet_.env().now() - last_read, LeasedFleet::kLease + seconds(1));
  EXPECT_FALSE(is_in_source());
  auto refused = fleet_.acquire(other, "a");
  EXPECT_EQ(refused->ec, errc::no_gate);
  EXPECT_FALSE(is_in_source());
}

TEST_F(LeasedLock, AHoldInBothNeedsNoGateAndIsLostWithEitherLock) {
  fleet_.turn(State::source_then_target);
  auto program = fleet_.program();
  auto other = fleet_.program();
  for (const auto& loses : {fleet_.server_s, fleet_.server_t}) {
    auto got = fleet_.acquire(program, "a");
    ASSERT_TRUE(got->handle);
    const auto before = fleet_.gate();
    fleet_.lose_gate();
    fleet_.run_for(3 * LeasedFleet::kLease);
    EXPECT_EQ(got->handle.state(), HandleState::held);
    fleet_.server_t->set_note("leased/p1", "", to_text(before));
    loses->evict("a");
    fleet_.run_for(milliseconds(5));
    EXPECT_EQ(got->handle.state(), HandleState::lost);
    EXPECT_EQ(got->handle.loss_reason(), LossReason::broken);
    EXPECT_FALSE(fleet_.acquire(other, "a", milliseconds(0))->handle);
    fleet_.let_go(*got);
    EXPECT_TRUE(is_free(fleet_.server_s));
    EXPECT_TRUE(is_free(fleet_.server_t));
  }
}

TEST_F(LeasedLock, AWaiterFollowsTheGate) {
  auto one = fleet_.program();
  auto two = fleet_.program();
  auto held = fleet_.acquire(one, "a");
  auto waiting = fleet_.acquire(two, "a");
  fleet_.turn_in_time(State::source_then_target);
  fleet_.turn_in_time(State::target);
  EXPECT_FALSE(is_in_source());
  EXPECT_EQ(waiting->times_told, 0);
  fleet_.let_go(*held);
  ASSERT_TRUE(waiting->handle) << waiting->ec.message() << waiting->diagnostics.server_text;
  EXPECT_EQ(waiting->handle.store(), "t");
  EXPECT_GT(*waiting->handle.token(), fleet_.gate().floor);
  EXPECT_FALSE(is_in_source());
}

TEST_F(LeasedLock, AWaiterForTheSecondLockHoldsWhenTheFirstIsEnoughAgain) {
  fleet_.turn(State::source_then_target);
  auto one = fleet_.program();
  core::Acquisition::Request request;
  request.name = "a";
  auto in_target = std::make_shared<Outcome>();
  one.stores.to->acquire(std::make_shared<core::Acquisition>(one.stores.to, std::move(request),
                                                             write_down(fleet_.env(), in_target)));
  fleet_.run_for(milliseconds(5));
  auto two = fleet_.program();
  auto waiting = fleet_.acquire(two, "a");
  EXPECT_TRUE(is_in_source());
  EXPECT_EQ(waiting->times_told, 0);
  fleet_.turn_in_time(State::source);
  EXPECT_TRUE(waiting->handle);
}

TEST_F(LeasedLock, AnotherStartOfThePlanIsNoGate) {
  auto program = fleet_.program();
  auto got = fleet_.acquire(program, "a");
  fleet_.let_go(*got);
  auto another = fleet_.gate();
  another.plan_id = "1111111111111111";
  fleet_.set_gate(another);
  fleet_.run_for(2 * LeasedFleet::kLease);
  EXPECT_EQ(fleet_.acquire(program, "a")->ec, errc::no_gate);
  another.to = "elsewhere";
  fleet_.set_gate(another);
  auto other = fleet_.program();
  EXPECT_EQ(fleet_.acquire(other, "a")->ec, errc::config_unsafe);
}

TEST_F(LeasedLock, NothingIsReadAfterTheEnd) {
  fleet_.turn(State::target);
  fleet_.turn(State::final_);
  auto program = fleet_.program();
  auto got = fleet_.acquire(program, "a");
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(got->handle.store(), "t");
  EXPECT_FALSE(got->handle.remaining());
  EXPECT_FALSE(is_in_source());
  fleet_.lose_gate();
  fleet_.run_for(10 * LeasedFleet::kLease);
  EXPECT_EQ(got->handle.state(), HandleState::held);
  fleet_.let_go(*got);
  EXPECT_TRUE(fleet_.acquire(program, "a")->handle);
}

}  // namespace
}  // namespace dlock::tests

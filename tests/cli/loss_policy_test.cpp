// SPDX-License-Identifier: Apache-2.0
#include "cli/process/loss_policy.hpp"

#include <gtest/gtest.h>

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using Action = LossPolicy::Action;

const TimePoint kStart{1'000s};

TEST(LossPolicy, WatchesAHeldLock) {
  LossPolicy policy(OnLost::terminate, {});
  const auto step = policy.step(HandleState::held, 30s, kStart);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(policy.margin(), 3s);  // a tenth of the lease before its end, and 0.1 s to be told
  EXPECT_EQ(step.ask_again_in, 26'900ms);
  EXPECT_EQ(policy.step(HandleState::held, 30s, kStart + 10s).ask_again_in, 26'900ms);
  EXPECT_FALSE(policy.was_lost());
}

TEST(LossPolicy, HasNothingToWatchWithoutALease) {
  LossPolicy policy(OnLost::terminate, {});
  const auto step = policy.step(HandleState::held, std::nullopt, kStart);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_FALSE(step.ask_again_in);
}

TEST(LossPolicy, TerminatesBeforeTheDeadlineAndKillsBeforeItToo) {
  LossPolicy policy(OnLost::terminate, {});
  policy.step(HandleState::held, 30s, kStart);
  EXPECT_EQ(policy.step(HandleState::suspect, 10s, kStart + 20s).ask_again_in, 6'900ms);
  EXPECT_EQ(policy.step(HandleState::suspect, 3s, kStart + 27s).action, Action::terminate);
  EXPECT_TRUE(policy.was_lost());
  // Five seconds of patience would be too late: the deadline is in three.
  const auto waiting = policy.step(HandleState::suspect, 3s, kStart + 27s);
  EXPECT_EQ(waiting.action, Action::none);
  EXPECT_EQ(waiting.ask_again_in, 3s - 300ms);
  EXPECT_EQ(policy.step(HandleState::suspect, 300ms, kStart + 29'700ms).action, Action::kill);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 30s).action, Action::none);
}

TEST(LossPolicy, TheMarginSuitsTheLease) {
  const struct {
    Duration lease;
    std::optional<std::chrono::milliseconds> kill_after;
    Duration margin;
  } table[] = {
      {60s, {}, 6s},   {30s, {}, 3s},   {5s, {}, 1s},     {1s, {}, 500ms},
      {30s, 10s, 10s}, {30s, 20s, 15s}, {30s, 100ms, 3s},
  };
  for (const auto& [lease, kill_after, margin] : table) {
    LossPolicy policy(OnLost::terminate, kill_after);
    const auto step = policy.step(HandleState::held, lease, kStart);
    EXPECT_EQ(policy.margin(), margin);
    EXPECT_LT(step.ask_again_in, lease - margin) << "a signal takes its time";
    EXPECT_GE(step.ask_again_in, lease - margin - 100ms);
  }
}

TEST(LossPolicy, ASuddenLossHasSigtermAtOnce) {
  LossPolicy policy(OnLost::terminate, {});
  policy.step(HandleState::held, 30s, kStart);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 1s).action, Action::terminate);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 1s).ask_again_in, 5s);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 6s).action, Action::kill);
}

TEST(LossPolicy, AfterAStopBeyondTheDeadlineThereIsNoPatience) {
  LossPolicy policy(OnLost::terminate, {});
  policy.step(HandleState::held, 10s, kStart);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 60s).action, Action::terminate);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 60s).action, Action::kill);
}

TEST(LossPolicy, WithoutALeaseALossHasPatience) {
  LossPolicy policy(OnLost::terminate, 2s);
  policy.step(HandleState::held, std::nullopt, kStart);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart).action, Action::terminate);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart).ask_again_in, 2s);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart + 2s).action, Action::kill);
}

TEST(LossPolicy, ARenewalAfterSigtermGivesTimeToEnd) {
  LossPolicy policy(OnLost::terminate, {});
  policy.step(HandleState::held, 30s, kStart);
  EXPECT_EQ(policy.step(HandleState::suspect, 3s, kStart + 27s).action, Action::terminate);
  EXPECT_EQ(policy.step(HandleState::held, 30s, kStart + 28s).ask_again_in, 4s);
  EXPECT_TRUE(policy.was_lost());  // the command was ended: its own status does not count
}

TEST(LossPolicy, WarnOnlyWarns) {
  LossPolicy policy(OnLost::warn, {});
  EXPECT_EQ(policy.step(HandleState::held, 30s, kStart).action, Action::none);
  EXPECT_EQ(policy.step(HandleState::suspect, 20s, kStart).action, Action::warn_suspect);
  EXPECT_EQ(policy.step(HandleState::suspect, 1s, kStart).action, Action::none);
  EXPECT_EQ(policy.step(HandleState::held, 30s, kStart).action, Action::none);
  EXPECT_EQ(policy.step(HandleState::suspect, 20s, kStart).action, Action::warn_suspect);
  EXPECT_FALSE(policy.was_lost());
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart).action, Action::warn_lost);
  EXPECT_EQ(policy.step(HandleState::lost, 0s, kStart).action, Action::none);
  EXPECT_TRUE(policy.was_lost());
}

}  // namespace
}  // namespace dlock::cli

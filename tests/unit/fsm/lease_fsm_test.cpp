// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/lease_fsm.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Change = LeaseFsm::Change;

const TimePoint kSent{seconds(1000)};
constexpr milliseconds kMargin{100};
constexpr milliseconds kPause{200};

Validity nine_seconds_from(TimePoint sent) { return {sent + seconds(9), sent + seconds(3)}; }
LeaseFsm fresh() { return {nine_seconds_from(kSent), kMargin, kPause, kSent}; }
/// From a confirmation at once to the deadline.
constexpr Duration kWhole = seconds(9) - kMargin;

TEST(LeaseFsm, DeadlineIsTheStoresPatienceLessTheMargin) {
  EXPECT_EQ(fresh().deadline(), kSent + seconds(9) - kMargin);
  EXPECT_EQ(fresh().renew_at(), kSent + kWhole / 3);
}

TEST(LeaseFsm, ALostRenewalLeavesTimeForAnotherOne) {
  auto lease = fresh();
  const auto sent = lease.renew_at();
  lease.on_extend_sent(sent);
  const auto unanswered = sent + lease.patience();
  EXPECT_EQ(lease.on_extend_failed(unanswered), Change::suspect);
  EXPECT_EQ(lease.renew_at(), unanswered) << "the pause is over";
  EXPECT_LE(lease.renew_at() + lease.patience(), lease.deadline());
}

TEST(LeaseFsm, AHolderThatStopsEarlierIsRenewedEarlier) {
  auto lease = fresh();
  lease.renew_within(seconds(6));
  EXPECT_EQ(lease.renew_at(), kSent + seconds(2));
  EXPECT_EQ(lease.patience(), seconds(2));
  const auto now = lease.renew_at();
  lease.on_extend_sent(now);
  EXPECT_EQ(lease.on_extended(nine_seconds_from(now), now), Change::none);
  EXPECT_EQ(lease.renew_at(), now + seconds(2));
  auto unbounded = fresh();
  unbounded.renew_within(seconds(60));
  EXPECT_EQ(unbounded.renew_at(), fresh().renew_at());
}

TEST(LeaseFsm, ALateConfirmationIsRenewedSoon) {
  const LeaseFsm lease(nine_seconds_from(kSent), kMargin, kPause, kSent + seconds(6));
  EXPECT_LE(lease.renew_at(), kSent + seconds(6) + seconds(1));
}

TEST(LeaseFsm, LosesAtTheDeadlineAndNotBefore) {
  auto lease = fresh();
  EXPECT_EQ(lease.on_time(lease.deadline() - Duration(1)), Change::none);
  EXPECT_EQ(lease.on_time(lease.deadline()), Change::lost);
  EXPECT_EQ(lease.reason(), LossReason::expired);
}

TEST(LeaseFsm, TellsALossOnce) {
  auto lease = fresh();
  EXPECT_EQ(lease.on_gone(LossReason::removed), Change::lost);
  EXPECT_EQ(lease.on_gone(LossReason::session_ended), Change::none);
  EXPECT_EQ(lease.on_time(kSent + seconds(60)), Change::none);
  EXPECT_EQ(lease.on_extended(nine_seconds_from(kSent), kSent), Change::none);
  EXPECT_EQ(lease.on_link_down(), Change::none);
  EXPECT_EQ(lease.reason(), LossReason::removed);
  EXPECT_EQ(lease.renew_at(), kNever);
}

TEST(LeaseFsm, AConfirmationMovesTheDeadlineFromItsSendingNotFromItsArrival) {
  auto lease = fresh();
  const auto sent = kSent + seconds(3);
  lease.on_extend_sent(sent);
  EXPECT_EQ(lease.renew_at(), kNever);  // one under way
  EXPECT_EQ(lease.on_extended(nine_seconds_from(sent), sent + seconds(4)), Change::none);
  EXPECT_EQ(lease.deadline(), sent + seconds(9) - kMargin);
}

TEST(LeaseFsm, AConfirmationAfterTheDeadlineComesTooLate) {
  auto lease = fresh();
  lease.on_extend_sent(kSent);
  const auto now = lease.deadline();
  EXPECT_EQ(lease.on_extended(nine_seconds_from(now), now), Change::lost);
}

TEST(LeaseFsm, AnOlderConfirmationNeverShortensTheDeadline) {
  auto lease = fresh();
  const auto before = lease.deadline();
  EXPECT_EQ(lease.on_extended(nine_seconds_from(kSent - seconds(5)), kSent), Change::none);
  EXPECT_EQ(lease.deadline(), before);
}

TEST(LeaseFsm, AFailedRenewalIsSuspectIsRetriedAndMayBeHeldAgain) {
  auto lease = fresh();
  const auto now = kSent + seconds(4);
  lease.on_extend_sent(now);
  EXPECT_EQ(lease.on_extend_failed(now), Change::suspect);
  EXPECT_EQ(lease.renew_at(), now + kPause);
  lease.on_extend_sent(now + kPause);
  EXPECT_EQ(lease.on_extend_failed(now + seconds(1)), Change::none);  // told already
  EXPECT_EQ(lease.on_extended(nine_seconds_from(now), now + seconds(2)), Change::held);
}

TEST(LeaseFsm, LinkDownIsSuspectAndLinkUpAsksAtOnce) {
  auto lease = fresh();
  EXPECT_EQ(lease.on_link_down(), Change::suspect);
  EXPECT_EQ(lease.on_extended(nine_seconds_from(kSent), kSent), Change::none);  // still down
  const auto now = kSent + seconds(2);
  EXPECT_EQ(lease.on_link_up(now), Change::none);  // the link proves nothing
  EXPECT_EQ(lease.renew_at(), now);
  EXPECT_EQ(lease.on_extended(nine_seconds_from(now), now), Change::held);
}

TEST(LeaseFsm, WithoutALeaseOnlyTheStoreCanTakeItAway) {
  LeaseFsm lease(Validity{}, kMargin, kPause, kSent);
  EXPECT_EQ(lease.deadline(), kNever);
  EXPECT_EQ(lease.on_time(kNever - Duration(1)), Change::none);
  EXPECT_EQ(lease.on_link_down(), Change::none);
  EXPECT_EQ(lease.on_gone(LossReason::removed), Change::lost);
}

TEST(LeaseFsm, DefaultMarginIsOnePercentAtLeastTwentyMilliseconds) {
  EXPECT_EQ(default_drift_margin(seconds(30)), milliseconds(300));
  EXPECT_EQ(default_drift_margin(seconds(1)), milliseconds(20));
}

}  // namespace
}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/waiting.hpp"

#include <gtest/gtest.h>

#include "dlock/spi/migration_store.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

ClaimRequest request_of(std::chrono::milliseconds lease) {
  ClaimRequest request;
  request.lease = lease;
  return request;
}

TEST(RedisWaiting, EachFieldIsNamed) {
  const WaitingTexts texts(11s);
  EXPECT_EQ(texts.text(WaiterKind::none, AtGrant::nothing),
            "queued=no range=no kind=none patience=11000 arrival=");
  EXPECT_EQ(texts.text(WaiterKind::handed, AtGrant::leave_queue),
            "queued=yes range=no kind=handed patience=11000 arrival=");
  EXPECT_EQ(texts.text(WaiterKind::reads, AtGrant::bring_range),
            "queued=no range=yes kind=reads patience=11000 arrival=");
  EXPECT_EQ(texts.text(WaiterKind::notified, AtGrant::nothing),
            "queued=no range=no kind=notified patience=11000 arrival=");
  EXPECT_EQ(texts.text(WaiterKind::present, AtGrant::nothing),
            "queued=no range=no kind=present patience=11000 arrival=");
}

TEST(RedisWaiting, TheKindFollowsFromTheRequest) {
  auto request = request_of(5s);
  EXPECT_EQ(waiter_kind(request, true), WaiterKind::handed);
  EXPECT_EQ(waiter_kind(request, false), WaiterKind::present);
  EXPECT_EQ(waiter_kind(request_of(25h), true), WaiterKind::present);
  request.gate = std::make_shared<const GateCheck>();
  EXPECT_EQ(waiter_kind(request, true), WaiterKind::notified);
  request.mode = Mode::shared;
  EXPECT_EQ(waiter_kind(request, true), WaiterKind::reads);
  request.queue = false;
  EXPECT_EQ(waiter_kind(request, true), WaiterKind::none);
}

}  // namespace
}  // namespace dlock::redis

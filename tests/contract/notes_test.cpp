// SPDX-License-Identifier: Apache-2.0
//
// Raised tokens and notes: what the target of a migration needs of a store.
#include <vector>

#include "tests/contract/contract.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::contract {
namespace {

using testkit::DirectClient;

class RaiseContract : public Contract {
 protected:
  /// False: the store cannot, and says so.
  bool raises() {
    if (capabilities().can_raise) return true;
    DirectClient client(url(), open_options());
    const auto held = client.acquire("a");
    EXPECT_EQ(client.raise(held, 1).failure.error, errc::not_supported);
    return false;
  }
};
DLOCK_CONTRACT(RaiseContract);

TEST_P(RaiseContract, AClaimWithAFloorGetsATokenAboveItAndSoDoAllAfterIt) {
  if (!raises()) return;
  DirectClient client(url(), open_options());
  const auto first = client.acquire("a");
  const auto floor = client.token_of(first) + kFar;
  client.release(first);
  const auto second = client.acquire("a", floor);
  EXPECT_GT(client.token_of(second), floor);
  client.release(second);
  const auto third = client.acquire("a");
  EXPECT_GT(client.token_of(third), client.token_of(second));
  client.release(third);
  auto last = client.token_of(third);
  for (int i = 0; i < 3; ++i) {
    const auto token = open().lock("a")->acquire().token();
    EXPECT_GT(*token, last);
    last = *token;
  }
}

TEST_P(RaiseContract, RaisingKeepsTheHoldersTokenAndLiftsAllLaterOnes) {
  if (!raises()) return;
  DirectClient holder(url(), open_options());
  DirectClient waiting(url(), open_options());
  const auto held = holder.acquire("a");
  const auto waiter = waiting.make("a");
  const auto asked = waiting.claim(waiter).status;
  EXPECT_TRUE(asked == ClaimStatus::waiting || asked == ClaimStatus::busy);
  const auto floor = holder.token_of(held) + kFar;
  ASSERT_EQ(holder.raise(held, floor).status, RecordStatus::done);
  ASSERT_EQ(holder.raise(held, floor - 1).status, RecordStatus::done) << "lower: nothing to do";
  EXPECT_TRUE(observer().status("a").held);
  EXPECT_EQ(holder.release(held), ReleaseStatus::released);
  const auto granted = [](const ClaimAnswer& answer) {
    return answer.status == ClaimStatus::granted;
  };
  const auto answer = waiting.ask_until(waiter, granted).get();
  ASSERT_EQ(answer.status, ClaimStatus::granted);
  EXPECT_GT(*answer.token, floor);
  EXPECT_EQ(waiting.release(waiter), ReleaseStatus::released);
  EXPECT_GT(*open().lock("a")->acquire().token(), *answer.token);
}

TEST_P(RaiseContract, WhoHasLostTheLockRaisesNothing) {
  if (!raises()) return;
  DirectClient client(url(), open_options());
  const auto lost = client.acquire("a");
  harness().take_away(observer(), url(), "a");
  EXPECT_EQ(client.raise(lost, kFar).status, RecordStatus::conflict);
  EXPECT_EQ(client.raise(client.make("b"), kFar).status, RecordStatus::conflict);
}

TEST_P(RaiseContract, WhatNoTokenCanBeAboveIsRefused) {
  if (!raises()) return;
  DirectClient client(url(), open_options());
  const auto held = client.acquire("a");
  const auto answer = client.raise(held, (std::uint64_t{1} << 53) - 1);
  EXPECT_EQ(answer.status, RecordStatus::failed);
  EXPECT_TRUE(answer.failure.error);
  client.release(held);
  EXPECT_TRUE(open().lock("a")->try_acquire()) << "and nothing has changed";
}

class NotesContract : public Contract {
 protected:
  /// False: the store has none, and says so.
  bool has_notes() {
    if (capabilities().can_raise || capabilities().can_seal) return true;
    DirectClient client(url(), open_options());
    EXPECT_EQ(client.note("a").failure.error, errc::not_supported);
    return false;
  }
};
DLOCK_CONTRACT(NotesContract);

TEST_P(NotesContract, ANoteIsComparedAndSet) {
  if (!has_notes()) return;
  DirectClient left(url(), open_options());
  DirectClient right(url(), open_options());
  EXPECT_EQ(left.note("plan/1").found, std::nullopt);
  EXPECT_EQ(left.set_note("plan/1", "other", "first").status, RecordStatus::conflict);
  ASSERT_EQ(left.set_note("plan/1", std::nullopt, "first").status, RecordStatus::done);
  EXPECT_EQ(right.note("plan/1").found, "first");
  const auto again = right.set_note("plan/1", std::nullopt, "second");
  EXPECT_EQ(again.status, RecordStatus::conflict);
  EXPECT_EQ(again.found, "first");
  const std::string long_text = std::string("\0\r\n", 3) + std::string(60'000, 'n');
  ASSERT_EQ(right.set_note("plan/1", "first", long_text).status, RecordStatus::done);
  EXPECT_EQ(left.note("plan/1").found, long_text);
  ASSERT_EQ(left.set_note("plan/1", long_text, std::nullopt).status, RecordStatus::done);
  EXPECT_EQ(right.note("plan/1").found, std::nullopt);
  EXPECT_EQ(right.set_note("plan/1", long_text, "third").status, RecordStatus::conflict);
  EXPECT_EQ(right.set_note("plan/1", "", "third").status, RecordStatus::done) << "empty is none";
}

TEST_P(NotesContract, OfTwoWritersAtOnceOneWins) {
  if (!has_notes()) return;
  DirectClient left(url(), open_options());
  DirectClient right(url(), open_options());
  std::optional<std::string> now;
  for (int round = 0; round < 10; ++round) {
    auto one = left.start_set_note("a", now, "left " + std::to_string(round));
    auto two = right.start_set_note("a", now, "right " + std::to_string(round));
    const auto first = one.get();
    const auto second = two.get();
    // A writer may be told to come again, and has not written then.
    const int won = (first.status == RecordStatus::done) + (second.status == RecordStatus::done);
    EXPECT_LE(won, 1) << round;
    const auto found = left.note("a").found;
    EXPECT_EQ(found != now, won == 1) << round;
    now = found;
  }
  EXPECT_TRUE(now);
}

TEST_P(NotesContract, NotesStandInNoLocksWay) {
  if (!has_notes()) return;
  const std::string long_name(512, 'n');
  const std::vector<std::string> names = {"a", "a/b",     "a/_c_x-lock-0000000001",
                                          "%", "n\u00e4", long_name};
  DirectClient client(url(), open_options());
  for (const auto& name : names) {
    EXPECT_EQ(client.set_note(name, std::nullopt, "about " + name).status, RecordStatus::done);
  }
  auto manager = open();
  for (const auto& name : names) {
    EXPECT_EQ(client.note(name).found, "about " + name);
    auto held = manager.lock(name)->try_acquire();
    ASSERT_TRUE(held) << name;
    EXPECT_TRUE(observer().status(name).held);
    EXPECT_FALSE(held->release());
  }
  if (capabilities().can_list) {
    EXPECT_TRUE(observer().list().empty());
  }
  // And a lock in no note's.
  EXPECT_EQ(client.set_note("a", "about a", std::nullopt).status, RecordStatus::done);
  EXPECT_EQ(client.note("a/b").found, "about a/b");
}

TEST_P(NotesContract, ANoteOutlivesItsWriterAndTheServerWhereRecordsDo) {
  if (!has_notes()) return;
  {
    DirectClient client(url(), open_options());
    ASSERT_EQ(client.set_note("a", std::nullopt, "first").status, RecordStatus::done);
  }
  if (capabilities().record_losses.empty()) harness().restart_server();
  EXPECT_EQ(DirectClient(url(), open_options()).note("a").found, "first");
}

}  // namespace
}  // namespace dlock::contract

// SPDX-License-Identifier: Apache-2.0
//
// A migration's record in the place of a lock, on every store that can have one.
#include <algorithm>
#include <vector>

#include "testkit/fault_proxy.hpp"
#include "tests/contract/contract.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::contract {
namespace {

using testkit::DirectClient;

bool is_granted(const ClaimAnswer& answer) { return answer.status == ClaimStatus::granted; }
bool is_sealed(const ClaimAnswer& answer) { return answer.status == ClaimStatus::sealed; }
bool is_second(const ClaimAnswer& answer) { return answer.record == "second"; }

bool gives_back(ReleaseStatus status) {
  return status == ReleaseStatus::released || status == ReleaseStatus::not_holder;
}

class MigrationContract : public Contract {
 protected:
  /// False: the store has no records, and says so.
  bool seals() {
    if (capabilities().can_seal) return true;
    DirectClient client(url(), open_options());
    const auto held = client.acquire("a");
    for (const auto& answer : {client.record("a"), client.seal(held, "first"),
                               client.set_record("a", "first", "second")}) {
      EXPECT_EQ(answer.status, RecordStatus::failed);
      EXPECT_EQ(answer.failure.error, errc::not_supported);
    }
    EXPECT_TRUE(observer().status("a").held);
    return false;
  }
  /// Sealed by a client that has gone.
  void seal(const std::string& name, const std::string& record) {
    DirectClient client(url(), open_options());
    ASSERT_EQ(client.seal(client.acquire(name), record).status, RecordStatus::done);
  }
  void expect_record(const std::string& name, const std::optional<std::string>& expected) {
    DirectClient client(url(), open_options());
    const auto answer = client.record(name);
    EXPECT_EQ(answer.status, RecordStatus::done) << answer.failure.text;
    EXPECT_EQ(answer.found, expected);
  }
  void expect_conflict(const RecordAnswer& answer, const std::optional<std::string>& found) {
    EXPECT_EQ(answer.status, RecordStatus::conflict) << answer.failure.text;
    EXPECT_EQ(answer.found, found);
  }
};
DLOCK_CONTRACT(MigrationContract);

TEST_P(MigrationContract, ASealStandsInThePlaceOfTheLock) {
  if (!seals()) return;
  DirectClient holder(url(), open_options());
  DirectClient other(url(), open_options());
  const auto held = holder.acquire("a/b");
  EXPECT_EQ(other.record("a/b").found, std::nullopt);
  ASSERT_EQ(holder.seal(held, "first").status, RecordStatus::done);
  EXPECT_EQ(other.record("a/b").found, "first") << "read by another connection";
  for (const bool queue : {false, true}) {
    const auto claim = other.make("a/b", queue);
    const auto answer = other.claim(claim);
    EXPECT_EQ(answer.status, ClaimStatus::sealed) << queue;
    EXPECT_EQ(answer.record, "first");
    EXPECT_EQ(other.release(claim), ReleaseStatus::released);
  }
  EXPECT_TRUE(gives_back(holder.release(held)));
  expect_record("a/b", "first");
  const auto status = observer().status("a/b");
  EXPECT_FALSE(status.held);
  EXPECT_TRUE(status.sealed);
  EXPECT_TRUE(status.waiting.empty()) << "nothing of a sealed claimant stays";
  ASSERT_FALSE(status.notes.empty());
  EXPECT_NE(status.notes.front().find("sealed by a migration"), std::string::npos);
  // Nothing else is.
  EXPECT_TRUE(open().lock("a")->try_acquire());
  EXPECT_TRUE(open().lock("a/b/c")->try_acquire());
}

TEST_P(MigrationContract, ALongRecordComesBackByteByByte) {
  if (!seals()) return;
  std::string record(kLongestRecord, 'x');
  for (std::size_t i = 0; i < 256; ++i) record[i] = static_cast<char>(i);
  seal("a", record);
  expect_record("a", record);
  DirectClient client(url(), open_options());
  const auto answer = client.claim(client.make("a"));
  EXPECT_EQ(answer.status, ClaimStatus::sealed);
  EXPECT_EQ(answer.record, record);
  auto next = record;
  next.back() = 'y';
  EXPECT_EQ(client.set_record("a", next, "second").status, RecordStatus::conflict);
  EXPECT_EQ(client.set_record("a", record, next).status, RecordStatus::done);
  EXPECT_EQ(client.set_record("a", next, "short").status, RecordStatus::done);
  expect_record("a", "short");
}

TEST_P(MigrationContract, WhoHasLostTheLockSealsNothing) {
  if (!seals()) return;
  DirectClient client(url(), open_options());
  const auto lost = client.acquire("a");
  harness().take_away(observer(), url(), "a");
  expect_conflict(client.seal(lost, "first"), std::nullopt);
  expect_record("a", std::nullopt);
  DirectClient next(url(), open_options());
  const auto held = next.acquire("a");
  expect_conflict(client.seal(lost, "first"), std::nullopt);
  EXPECT_EQ(observer().status("a").token, next.token_of(held)) << "it was left alone";
  // Nor does a claim that was given back, or was never granted.
  EXPECT_EQ(next.release(held), ReleaseStatus::released);
  expect_conflict(next.seal(held, "first"), std::nullopt);
  expect_conflict(next.seal(next.make("a"), "first"), std::nullopt);
  expect_record("a", std::nullopt);
  EXPECT_TRUE(open().lock("a")->try_acquire());
}

TEST_P(MigrationContract, ASecondSealFindsTheFirst) {
  if (!seals()) return;
  DirectClient client(url(), open_options());
  const auto held = client.acquire("a");
  ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
  expect_conflict(client.seal(held, "second"), "first");
  expect_record("a", "first");
}

// Its answer may be from before what it is woken for.
TEST_P(MigrationContract, WhoIsInterruptedWhileItAsksDoesNotWait) {
  DirectClient holder(url(), open_options());
  DirectClient client(url(), open_options());
  const auto held = holder.acquire("a");
  const auto claim = client.make("a");
  ASSERT_NE(client.claim(claim).status, ClaimStatus::granted);
  const auto began = std::chrono::steady_clock::now();
  auto answer = client.start(client.backend().claim(claim, DirectClient::soon()));
  client.interrupt(claim);
  EXPECT_NE(answer.get().status, ClaimStatus::granted);
  client.wait(claim);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15)) << "of 30";
  client.release(claim, true);
}

TEST_P(MigrationContract, WaitersAreToldAndGoOnWhenTheLockIsOpened) {
  if (!seals()) return;
  DirectClient holder(url(), open_options());
  DirectClient first(url(), open_options());
  DirectClient second(url(), open_options());
  const auto held = holder.acquire("a");
  std::vector<std::pair<DirectClient*, ClaimPtr>> waiters;
  std::vector<std::future<ClaimAnswer>> told;
  for (auto* client : {&first, &first, &second}) {
    waiters.emplace_back(client, client->make("a"));
    ASSERT_EQ(client->claim(waiters.back().second).status, ClaimStatus::waiting);
  }
  for (auto& [client, claim] : waiters) told.push_back(client->ask_until(claim, is_sealed));
  ASSERT_EQ(holder.seal(held, "first").status, RecordStatus::done);
  // Where a waiter watches only the one before him, the first is woken; all learn it when they
  // look.
  ASSERT_TRUE(eventually(patience(), [&] {
    return std::any_of(told.begin(), told.end(), [](const auto& one) {
      return one.wait_for(0s) == std::future_status::ready;
    });
  }));
  for (auto& [client, claim] : waiters) client->interrupt(claim);
  for (auto& one : told) EXPECT_EQ(one.get().record, "first");
  told.clear();
  for (auto& [client, claim] : waiters) told.push_back(client->ask_until(claim, is_second));
  ASSERT_EQ(holder.set_record("a", "first", "second").status, RecordStatus::done);
  for (auto& one : told) EXPECT_EQ(one.get().record, "second");
  told.clear();
  const auto floor = holder.token_of(held) + kFar;
  for (auto& [client, claim] : waiters) told.push_back(client->ask_until(claim, is_granted));
  ASSERT_EQ(holder.set_record("a", "second", std::nullopt, floor).status, RecordStatus::done);
  // One after the other, in whichever order.
  auto last = floor;
  std::vector<bool> served(waiters.size());
  for (std::size_t turn = 0; turn < waiters.size(); ++turn) {
    std::size_t who = waiters.size();
    ASSERT_TRUE(eventually(patience(), [&] {
      for (std::size_t i = 0; i < waiters.size(); ++i) {
        const bool ready = !served[i] && told[i].wait_for(0s) == std::future_status::ready;
        if (ready) who = i;
      }
      return who < waiters.size();
    })) << turn;
    const auto answer = told[who].get();
    ASSERT_EQ(answer.status, ClaimStatus::granted);
    EXPECT_GT(*answer.token, last);
    last = *answer.token;
    served[who] = true;
    EXPECT_EQ(waiters[who].first->release(waiters[who].second), ReleaseStatus::released);
  }
  EXPECT_TRUE(becomes_free("a"));
  EXPECT_GT(*open().lock("a")->acquire().token(), last);
}

// Whoever did not look while the record stood there has a place from before.
TEST_P(MigrationContract, AWaiterThatSleptThroughItHasATokenAboveTheFloorToo) {
  if (!seals()) return;
  DirectClient holder(url(), open_options());
  DirectClient sleeper(url(), open_options());
  const auto held = holder.acquire("a");
  const auto waiter = sleeper.make("a");
  ASSERT_EQ(sleeper.claim(waiter).status, ClaimStatus::waiting);
  const auto floor = holder.token_of(held) + kFar;
  ASSERT_EQ(holder.seal(held, "first").status, RecordStatus::done);
  ASSERT_EQ(holder.set_record("a", "first", std::nullopt, floor).status, RecordStatus::done);
  const auto answer = sleeper.ask_until(waiter, is_granted).get();
  ASSERT_EQ(answer.status, ClaimStatus::granted);
  EXPECT_GT(*answer.token, floor);
}

TEST_P(MigrationContract, AChangeNeedsTheRecordThatStandsThere) {
  if (!seals()) return;
  DirectClient client(url(), open_options());
  expect_conflict(client.set_record("a", "first", "second"), std::nullopt);
  const auto held = client.acquire("a");
  expect_conflict(client.set_record("a", "first", "second"), std::nullopt);
  ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
  expect_conflict(client.set_record("a", "other", "second"), "first");
  expect_conflict(client.set_record("a", "firs", std::nullopt, kFar), "first");
  EXPECT_EQ(client.set_record("a", "first", "second").status, RecordStatus::done);
  expect_conflict(client.set_record("a", "first", "third"), "second");
  EXPECT_EQ(client.set_record("a", "second", std::nullopt).status, RecordStatus::done);
  expect_conflict(client.set_record("a", "second", "third"), std::nullopt);
  EXPECT_TRUE(open().lock("a")->try_acquire());
}

TEST_P(MigrationContract, OfTwoChangesAtOnceOneIsMade) {
  if (!seals()) return;
  DirectClient left(url(), open_options());
  DirectClient right(url(), open_options());
  ASSERT_EQ(left.seal(left.acquire("a"), "0").status, RecordStatus::done);
  std::string now = "0";
  for (int round = 1; round <= 20; ++round) {
    const auto mine = "left " + std::to_string(round);
    const auto yours = "right " + std::to_string(round);
    auto one = left.start_set("a", now, mine);
    auto two = right.start_set("a", now, yours);
    const auto first = one.get();
    const auto second = two.get();
    const bool won = first.status == RecordStatus::done;
    EXPECT_NE(won, second.status == RecordStatus::done) << round;
    now = won ? mine : yours;
    expect_conflict(won ? second : first, now);
    ASSERT_EQ(left.record("a").found, now);
  }
}

TEST_P(MigrationContract, RecordAndFloorOutliveClientsAndServer) {
  if (!seals()) return;
  std::uint64_t floor = 0;
  {
    DirectClient client(url(), open_options());
    const auto held = client.acquire("a");
    floor = client.token_of(held) + kFar;
    ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
    ASSERT_EQ(client.set_record("a", "first", std::nullopt, floor).status, RecordStatus::done);
  }
  seal("b", "second");
  if (capabilities().record_losses.empty()) harness().restart_server();
  const auto token = open().lock("a")->acquire().token();
  EXPECT_GT(*token, floor);
  EXPECT_GT(*open().lock("a")->acquire().token(), *token);
  expect_record("b", "second");
  DirectClient client(url(), open_options());
  EXPECT_EQ(client.claim(client.make("b")).status, ClaimStatus::sealed);
}

TEST_P(MigrationContract, WhatComesLateDoesNoHarm) {
  if (!seals()) return;
  DirectClient client(url(), open_options());
  const auto held = client.acquire("a");
  ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
  std::vector<ClaimPtr> claims = {held};
  client.run(client.backend().extend(std::move(claims), DirectClient::soon()));
  expect_record("a", "first");
  EXPECT_EQ(client.claim(held).status, ClaimStatus::sealed) << "a request for it, too";
  for (const bool search : {false, true}) {
    EXPECT_TRUE(gives_back(client.release(held, search)));
    expect_record("a", "first");
  }
  EXPECT_TRUE(observer().status("a").waiting.empty());
}

TEST_P(MigrationContract, ASealedNameIsShownAndCannotBeBroken) {
  if (!seals()) return;
  DirectClient client(url(), open_options());
  const auto held = client.acquire("a/b");
  const auto token = client.token_of(held);
  ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
  EXPECT_EQ(error_of([&] { observer().evict("a/b", token, {.at_once = true}); }), errc::moving);
  expect_record("a/b", "first");
  if (!capabilities().can_list) return;
  const auto all = observer().list("a");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "a/b");
  EXPECT_FALSE(all[0].held);
  EXPECT_TRUE(all[0].sealed);
}

class MigrationLinkContract : public MigrationContract {};
DLOCK_CONTRACT_OF_LINKS(MigrationLinkContract);

// The answer is lost: whether it was done is read, and a repetition does it once.
TEST_P(MigrationLinkContract, AWriteWithoutAnAnswerIsResolvedByReading) {
  if (!seals()) return;
  testkit::FaultProxy proxy(harness().port());
  auto through = url();
  const auto port = std::to_string(harness().port());
  through.replace(through.find(port), port.size(), std::to_string(proxy.port()));
  DirectClient client(through, open_options());
  auto& backend = client.backend();
  const auto soon = [] { return BoottimeClock::now() + 300ms; };
  // What a server has to be told once only, it has been told.
  ASSERT_EQ(client.seal(client.acquire("warm"), "first").status, RecordStatus::done);
  ASSERT_EQ(client.set_record("warm", "first", "second").status, RecordStatus::done);
  const auto held = client.acquire("a");
  proxy.hold(testkit::Direction::to_client, true);
  EXPECT_EQ(client.run(backend.migration().seal(held, "first", soon())).status,
            RecordStatus::unknown);
  EXPECT_EQ(client.run(backend.migration().record("a", soon())).status, RecordStatus::unavailable);
  expect_record("a", "first");
  proxy.hold(testkit::Direction::to_client, false);
  EXPECT_EQ(client.record("a").found, "first");
  expect_conflict(client.seal(held, "first"), "first");
  EXPECT_TRUE(gives_back(client.release(held)));
  // A change may have to read first, and has written nothing then.
  proxy.hold(testkit::Direction::to_client, true);
  const auto changed =
      client.run(backend.migration().set_record("a", "first", "second", 0, soon()));
  EXPECT_TRUE(changed.status == RecordStatus::unknown ||
              changed.status == RecordStatus::unavailable);
  proxy.hold(testkit::Direction::to_client, false);
  const auto found = client.record("a").found.value_or("");
  EXPECT_TRUE(found == "second" || changed.status == RecordStatus::unavailable) << found;
  const auto again = client.set_record("a", "first", "second");
  EXPECT_EQ(again.status, found == "second" ? RecordStatus::conflict : RecordStatus::done);
  expect_record("a", "second");
}

}  // namespace
}  // namespace dlock::contract

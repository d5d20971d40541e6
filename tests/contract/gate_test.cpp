// SPDX-License-Identifier: Apache-2.0
//
// Claims, seals and records under a plan's gate, on every store that can have one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "testkit/fault_proxy.hpp"
#include "tests/contract/contract.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::contract {
namespace {

using testkit::DirectClient;

const std::string kKey = "gate/p";

GatePtr gate(const std::string& text, const std::string& seal = {}) {
  return std::make_shared<const GateCheck>(GateCheck{kKey, text, seal});
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class GateContract : public Contract {
 protected:
  /// False: the store can have none, and says so.
  bool gates() {
    if (capabilities().can_gate) return true;
    DirectClient client(url(), open_options());
    EXPECT_EQ(client.claimed_names().failure.error, errc::not_supported);
    EXPECT_EQ(client.highest_token().failure.error, errc::not_supported);
    const auto answer = client.set_record_under(gate("OPEN 1"), "a", "first", "second");
    EXPECT_EQ(answer.failure.error, errc::not_supported);
    return false;
  }
  /// From whatever it was.
  void turn(DirectClient& client, const std::string& text) {
    for (;;) {
      const auto before = client.note(kKey);
      ASSERT_EQ(before.status, RecordStatus::done) << before.failure.text;
      const auto set = client.set_note(kKey, before.found, text);
      if (set.status == RecordStatus::done) return;
      ASSERT_EQ(set.status, RecordStatus::unavailable)
          << set.failure.text;  // files: another writes
    }
  }
  std::vector<std::string> claimed(DirectClient& client, const std::string& prefix = {}) {
    auto names = client.claimed_names(prefix);
    EXPECT_TRUE(names.value) << names.failure.error.message() << ": " << names.failure.text;
    return names.value.value_or(std::vector<std::string>());
  }
  /// Nothing of anybody is there.
  void expect_free(const std::string& name) {
    const auto status = observer().status(name);
    EXPECT_FALSE(status.held) << name;
    EXPECT_TRUE(status.waiting.empty()) << name;
    EXPECT_TRUE(open().lock(name)->try_acquire()) << name;
  }
  void expect_turned(DirectClient& client, const ClaimPtr& claim, const std::string& text) {
    const auto answer = client.claim(claim);
    EXPECT_EQ(answer.status, ClaimStatus::gate_changed) << answer.failure.text;
    EXPECT_EQ(answer.record, text);
  }
};
DLOCK_CONTRACT(GateContract);

TEST_P(GateContract, UnderTheGateThatStandsAClaimIsAsAnyOther) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "OPEN 1");
  std::uint64_t last = 0;
  for (const bool queue : {false, true}) {
    const auto claim = client.make_under(gate("OPEN 1"), "a/b", queue);
    const auto answer = client.claim(claim);
    ASSERT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
    EXPECT_GT(*answer.token, last);
    last = *answer.token;
    EXPECT_EQ(observer().status("a/b").token, last) << "as others see it";
    EXPECT_EQ(client.claim(claim).token, last) << "asked again it is the same";
    DirectClient other(url(), open_options());
    EXPECT_EQ(other.claim(other.make_under(gate("OPEN 1"), "a/b", false)).status,
              ClaimStatus::busy);
    const auto waiter = other.make_under(gate("OPEN 1"), "a/b");
    EXPECT_EQ(other.claim(waiter).status, ClaimStatus::waiting);
    EXPECT_EQ(client.release(claim), ReleaseStatus::released);
    const auto granted = [](const ClaimAnswer& one) { return one.status == ClaimStatus::granted; };
    const auto next = other.ask_until(waiter, granted).get();
    ASSERT_EQ(next.status, ClaimStatus::granted);
    EXPECT_GT(*next.token, last);
    last = *next.token;
    EXPECT_EQ(observer().status("a/b").token, last);
    EXPECT_EQ(other.release(waiter), ReleaseStatus::released);
  }
  expect_free("a/b");
}

TEST_P(GateContract, AClaimUnderAnotherGateIsToldAndLeavesNothing) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "TURNED 2");
  for (const auto* const belief : {"OPEN 1", "", "TURNED 2 ", "TURNED"}) {
    for (const bool queue : {false, true}) {
      expect_turned(client, client.make_under(gate(belief), "a", queue), "TURNED 2");
      expect_free("a");
      DirectClient holder(url(), open_options());
      const auto held = holder.acquire("a");
      expect_turned(client, client.make_under(gate(belief), "a", queue), "TURNED 2");
      EXPECT_TRUE(observer().status("a").waiting.empty());
      EXPECT_EQ(holder.release(held), ReleaseStatus::released);
    }
  }
  const auto right = client.make_under(gate("TURNED 2"), "a");
  EXPECT_EQ(client.claim(right).status, ClaimStatus::granted);
}

// What a client knows of the gate from before counts for nothing.
TEST_P(GateContract, WhoHasClaimedUnderTheGateBeforeIsToldThatItHasTurned) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  DirectClient turner(url(), open_options());
  turn(turner, "OPEN 1");
  const auto first = client.make_under(gate("OPEN 1"), "a");
  ASSERT_EQ(client.claim(first).status, ClaimStatus::granted);
  EXPECT_EQ(client.release(first), ReleaseStatus::released);
  turn(turner, "TURNED 2");
  expect_turned(client, client.make_under(gate("OPEN 1"), "a"), "TURNED 2");
  expect_free("a");
}

TEST_P(GateContract, AGateThatIsNotThereIsAnEmptyOne) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  expect_turned(client, client.make_under(gate("OPEN 1"), "a"), "");
  const auto held = client.make_under(gate(""), "a");
  ASSERT_EQ(client.claim(held).status, ClaimStatus::granted);
  EXPECT_EQ(client.note(kKey).found, std::nullopt);
  EXPECT_EQ(client.release(held), ReleaseStatus::released);
  EXPECT_EQ(client.set_note(kKey, "other", "OPEN 1").status, RecordStatus::conflict);
  ASSERT_EQ(client.set_note(kKey, std::nullopt, "OPEN 1").status, RecordStatus::done);
  EXPECT_EQ(client.note(kKey).found, "OPEN 1");
  expect_turned(client, client.make_under(gate(""), "a"), "OPEN 1");
  EXPECT_EQ(client.claim(client.make_under(gate("OPEN 1"), "a")).status, ClaimStatus::granted);
}

TEST_P(GateContract, ARecordCountsMoreThanTheGate) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "TURNED 2");
  ASSERT_EQ(client.seal(client.acquire("a"), "first").status, RecordStatus::done);
  for (const auto* const belief : {"OPEN 1", "TURNED 2", ""}) {
    for (const bool queue : {false, true}) {
      for (const auto* const seal : {"", "another {token}"}) {
        const auto claim = client.make_under(gate(belief, seal), "a", queue);
        const auto answer = client.claim(claim);
        EXPECT_EQ(answer.status, ClaimStatus::sealed) << belief << answer.failure.text;
        EXPECT_EQ(answer.record, "first");
        EXPECT_EQ(client.release(claim), ReleaseStatus::released);
      }
    }
  }
  EXPECT_EQ(client.record("a").found, "first");
  EXPECT_TRUE(observer().status("a").waiting.empty());
}

TEST_P(GateContract, WhoWaitedWhenTheGateTurnedIsShownOrAskedAgain) {
  if (!gates()) return;
  DirectClient holder(url(), open_options());
  DirectClient waiting(url(), open_options());
  turn(holder, "OPEN 1");
  const auto held = holder.make_under(gate("OPEN 1"), "a");
  ASSERT_EQ(holder.claim(held).status, ClaimStatus::granted);
  const auto waiter = waiting.make_under(gate("OPEN 1"), "a");
  ASSERT_EQ(waiting.claim(waiter).status, ClaimStatus::waiting);
  turn(holder, "TURNED 2");
  EXPECT_EQ(holder.claim(held).status, ClaimStatus::granted) << "a holder stays what he is";
  EXPECT_TRUE(is_in(claimed(holder), "a"));
  EXPECT_EQ(holder.release(held), ReleaseStatus::released);
  const auto shown = is_in(claimed(holder), "a");
  const auto settled = [](const ClaimAnswer& one) { return one.status != ClaimStatus::waiting; };
  const auto answer = waiting.ask_until(waiter, settled).get();
  if (answer.status == ClaimStatus::granted) {
    EXPECT_TRUE(shown);
    EXPECT_EQ(waiting.release(waiter), ReleaseStatus::released);
  } else {
    EXPECT_EQ(answer.status, ClaimStatus::gate_changed);
    EXPECT_EQ(answer.record, "TURNED 2");
  }
  expect_free("a");
  EXPECT_FALSE(is_in(claimed(holder), "a"));
}

TEST_P(GateContract, ASealIsWrittenUnderTheGateOfItsClaimOnly) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "TURNED 2");
  const auto held = client.make_under(gate("TURNED 2"), "a");
  const auto token = client.claim(held).token;
  turn(client, "OPEN 3");
  const auto refused = client.seal(held, "first");
  EXPECT_EQ(refused.status, RecordStatus::conflict) << refused.failure.text;
  EXPECT_EQ(refused.gate, "OPEN 3");
  EXPECT_EQ(refused.found, std::nullopt);
  EXPECT_EQ(client.record("a").found, std::nullopt);
  EXPECT_EQ(observer().status("a").token, token) << "the claim is as it was";
  EXPECT_EQ(client.release(held), ReleaseStatus::released);
  const auto next = client.make_under(gate("OPEN 3"), "a");
  ASSERT_EQ(client.claim(next).status, ClaimStatus::granted);
  const auto done = client.seal(next, "first");
  EXPECT_EQ(done.status, RecordStatus::done) << done.failure.text;
  EXPECT_EQ(done.gate, std::nullopt);
  EXPECT_EQ(client.record("a").found, "first");
  EXPECT_EQ(client.claim(client.make("a")).record, "first");
}

TEST_P(GateContract, ARecordIsChangedUnderTheGateThatIsExpectedOnly) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "TURNED 2");
  const auto held = client.acquire("a");
  const auto floor = client.token_of(held) + kFar;
  ASSERT_EQ(client.seal(held, "first").status, RecordStatus::done);
  for (const auto& to : {std::optional<std::string>("second"), std::optional<std::string>()}) {
    const auto refused = client.set_record_under(gate("OPEN 1"), "a", "first", to, floor);
    EXPECT_EQ(refused.status, RecordStatus::conflict) << refused.failure.text;
    EXPECT_EQ(refused.gate, "TURNED 2");
    EXPECT_EQ(client.record("a").found, "first");
  }
  const auto other = client.set_record_under(gate("OPEN 1"), "a", "fir", "second");
  EXPECT_EQ(other.status, RecordStatus::conflict);
  EXPECT_EQ(other.found, "first");
  EXPECT_EQ(other.gate, std::nullopt) << "the record comes first";
  const auto under = gate("TURNED 2");
  EXPECT_EQ(client.set_record_under(under, "a", "first", "second").status, RecordStatus::done);
  EXPECT_EQ(client.record("a").found, "second");
  EXPECT_EQ(client.set_record_under(under, "a", "second", {}, floor).status, RecordStatus::done);
  EXPECT_EQ(client.record("a").found, std::nullopt);
  EXPECT_GT(*open().lock("a")->acquire().token(), floor);
}

TEST_P(GateContract, AClaimThatMayNotHoldSealsAtOnceOrIsGrantedToSeal) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  turn(client, "TURNED 2");
  const auto before = client.acquire("a");
  const auto last = client.token_of(before);
  EXPECT_EQ(client.release(before), ReleaseStatus::released);
  for (const bool queue : {false, true}) {
    const auto name = queue ? std::string("a") : std::string("b");
    const auto claim = client.make_under(gate("TURNED 2", "rec {token} {token}"), name, queue);
    const auto answer = client.claim(claim);
    if (answer.status == ClaimStatus::granted) {
      const auto record = fmt::format("rec {0} {0}", *answer.token);
      ASSERT_EQ(client.seal(claim, record).status, RecordStatus::done);
    } else {
      ASSERT_EQ(answer.status, ClaimStatus::sealed) << answer.failure.text;
      EXPECT_EQ(client.release(claim), ReleaseStatus::released);
    }
    const auto record = client.record(name).found.value_or("");
    unsigned long long floor = 0;  // NOLINT(google-runtime-int): sscanf's own
    unsigned long long again = 0;  // NOLINT(google-runtime-int): likewise
    ASSERT_EQ(std::sscanf(record.c_str(), "rec %llu %llu", &floor, &again), 2) << record;
    EXPECT_EQ(floor, again);
    EXPECT_GT(floor, queue ? last : 0);
    EXPECT_TRUE(observer().status(name).sealed);
    ASSERT_EQ(client.set_record(name, record, {}, floor).status, RecordStatus::done);
    EXPECT_GT(*open().lock(name)->acquire().token(), floor);
  }
}

TEST_P(GateContract, ClaimedAreTheNamesThatSomebodyHoldsOrWaitsForWithoutARecord) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  DirectClient other(url(), open_options());
  EXPECT_TRUE(claimed(client).empty());
  turn(client, "OPEN 1");
  client.acquire("a");
  client.acquire("a/b");
  client.acquire("ab");
  EXPECT_EQ(other.claim(other.make("a/b")).status, ClaimStatus::waiting);
  EXPECT_EQ(client.claim(client.make_under(gate("OPEN 1"), "a/c")).status, ClaimStatus::granted);
  client.release(client.acquire("a/free"));
  const auto moved = client.acquire("a/moved");
  EXPECT_EQ(other.claim(other.make("a/moved")).status, ClaimStatus::waiting);
  ASSERT_EQ(client.seal(moved, "first").status, RecordStatus::done);
  EXPECT_EQ(claimed(client), (std::vector<std::string>{"a", "a/b", "a/c", "ab"}));
  EXPECT_EQ(claimed(other, "a"), (std::vector<std::string>{"a", "a/b", "a/c"}));
  EXPECT_EQ(claimed(other, "a/b"), (std::vector<std::string>{"a/b"}));
  EXPECT_TRUE(claimed(other, "b").empty());
}

TEST_P(GateContract, TheHighestTokenIsAboveAllThatWereGiven) {
  if (!gates()) return;
  DirectClient client(url(), open_options());
  std::uint64_t highest = 0;
  for (const auto* const name : {"a", "b", "c", "d"}) {
    const auto held = client.acquire(name, highest + kFar);
    highest = std::max(highest, client.token_of(held));
    EXPECT_EQ(client.release(held), ReleaseStatus::released);
    const auto asked = DirectClient(url(), open_options()).highest_token();
    ASSERT_TRUE(asked.value) << asked.failure.text;
    EXPECT_GE(*asked.value, highest) << name;
    EXPECT_LT(*asked.value, std::uint64_t{1} << 53U);
  }
  const auto plain = client.acquire("e");
  EXPECT_GE(client.highest_token().value.value_or(0), client.token_of(plain));
  EXPECT_TRUE(observer().status("e").held);
}

/// What came of those who asked while the gate was turned.
struct Race {
  int held = 0;
  int waited = 0;
  int told = 0;
};

// Each round: two claims under the open gate, begun together with its turn; one begun after it;
// then the list. Whoever holds, or is let in later, is in the list; the others have left nothing.
TEST_P(GateContract, NobodyIsMissedWhenTheGateTurnsAndNobodyBeginsAfterIt) {
  if (!gates()) return;
  constexpr int kRounds = 100;
  DirectClient turner(url(), open_options());
  std::vector<std::unique_ptr<DirectClient>> clients;
  for (int i = 0; i < 3; ++i)
    clients.push_back(std::make_unique<DirectClient>(url(), open_options()));
  auto& late = *clients[2];
  std::mt19937 dice(static_cast<unsigned char>(GetParam().name[0]));
  Race race;
  auto turn_takes = std::chrono::microseconds(150);
  turn(turner, "OPEN 0");
  for (int round = 0; round < kRounds; ++round) {
    const auto was = fmt::format("OPEN {}", round);
    const auto is = fmt::format("TURNED {}", round);
    const bool same = dice() % 2 == 0;
    std::vector<std::string> names = {"a", same ? "a" : "b"};
    std::vector<ClaimPtr> claims;
    for (std::size_t i = 0; i < 2; ++i)
      claims.push_back(clients[i]->make_under(gate(was), names[i]));
    const auto tardy = late.make_under(gate(was), "c");
    // They know it from before, so that nobody has to read it now.
    for (const auto& one : clients) ASSERT_EQ(one->note(kKey).found, was);
    std::vector<std::future<ClaimAnswer>> asked(2);
    std::future<RecordAnswer> turned;
    auto begun = std::chrono::steady_clock::now();
    // In any order, spread over the time that a turn takes.
    std::vector<int> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), dice);
    for (const int who : order) {
      const auto pause = std::chrono::microseconds(
          dice() % static_cast<std::mt19937::result_type>(turn_takes.count()));
      const auto until = std::chrono::steady_clock::now() + pause;
      while (std::chrono::steady_clock::now() < until) {
      }
      if (who == 2) {
        begun = std::chrono::steady_clock::now();
        turned = turner.start_set_note(kKey, was, is);
        continue;
      }
      const auto i = static_cast<std::size_t>(who);
      auto& backend = clients[i]->backend();
      asked[i] = clients[i]->start(backend.claim(claims[i], DirectClient::soon()));
    }
    const auto set = turned.get();
    turn_takes = std::clamp(std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::steady_clock::now() - begun),
                            std::chrono::microseconds(50), std::chrono::microseconds(20'000));
    if (set.status != RecordStatus::done) turn(turner, is);
    expect_turned(late, tardy, is);
    const auto shown = claimed(turner);
    EXPECT_FALSE(is_in(shown, "c")) << round;
    std::vector<ClaimStatus> came;
    for (auto& one : asked) came.push_back(one.get().status);
    const auto behind = [&](std::size_t i) {
      const auto settled = [](const ClaimAnswer& one) {
        return one.status != ClaimStatus::waiting;
      };
      return clients[i]->ask_until(claims[i], settled).get().status;
    };
    const std::size_t first = came[0] == ClaimStatus::waiting ? 1 : 0;
    for (const auto i : {first, 1 - first}) {
      const bool waited = came[i] == ClaimStatus::waiting;
      if (waited) came[i] = behind(i);
      if (came[i] == ClaimStatus::granted) {
        EXPECT_TRUE(is_in(shown, names[i])) << round << " " << waited;
        EXPECT_EQ(clients[i]->release(claims[i]), ReleaseStatus::released);
        ++(waited ? race.waited : race.held);
      } else {
        ASSERT_EQ(came[i], ClaimStatus::gate_changed) << round;
        ++race.told;
      }
    }
    ASSERT_TRUE(claimed(turner).empty()) << round;
    turn(turner, fmt::format("OPEN {}", round + 1));
    ASSERT_FALSE(HasFailure());
  }
  fmt::print("{}: {} held, {} waited and held, {} were told\n", GetParam().name, race.held,
             race.waited, race.told);
  EXPECT_EQ(race.held + race.waited + race.told, 2 * kRounds);
}

class GateLinkContract : public GateContract {};
DLOCK_CONTRACT_OF_LINKS(GateLinkContract);

struct Cost {
  int round_trips = 1000;
  std::uint64_t segments = 0;
  bool operator==(const Cost&) const = default;
};

// Every answer is held back for a while: so many times as that fits into a claim, so often did it
// wait for the server. The quickest of some counts.
TEST_P(GateLinkContract, AClaimUnderAGateTakesTheRoundTripsOfOneWithout) {
  if (!gates()) return;
  constexpr auto kAway = 100ms;
  testkit::FaultProxy proxy(harness().port());
  auto through = url();
  const auto port = std::to_string(harness().port());
  through.replace(through.find(port), port.size(), std::to_string(proxy.port()));
  DirectClient client(through, open_options());
  turn(client, "TURNED 2");
  ASSERT_EQ(client.seal(client.acquire("moved"), "first").status, RecordStatus::done);
  const auto cost_of = [&](const std::string& name, const GatePtr& under, ClaimStatus expected) {
    Cost least;
    for (int i = 0; i < 4; ++i) {
      const auto claim = client.make_under(under, name);
      if (i > 0) proxy.delay(testkit::Direction::to_client, kAway);
      const auto before = proxy.stats().to_server.segments;
      const auto begun = testkit::Clock::now();
      EXPECT_EQ(client.claim(claim).status, expected) << name;
      const auto took = testkit::Clock::now() - begun;
      const Cost cost{static_cast<int>(took / kAway), proxy.stats().to_server.segments - before};
      if (i > 0 && cost.round_trips < least.round_trips) least = cost;
      proxy.delay(testkit::Direction::to_client, 0ms);
      client.release(claim);
    }
    fmt::print("{}, {}{}: {} round trips, {} segments\n", GetParam().name, name,
               under ? " under a gate" : "", least.round_trips, least.segments);
    return least;
  };
  const auto under = gate("TURNED 2");
  for (const auto& [name, status] : {std::pair<std::string, ClaimStatus>("a", ClaimStatus::granted),
                                     {"moved", ClaimStatus::sealed}}) {
    const auto plain = cost_of(name, nullptr, status);
    const auto governed = cost_of(name, under, status);
    EXPECT_EQ(plain.round_trips, 1) << name;
    EXPECT_EQ(governed.round_trips, 1) << name;
  }
}

}  // namespace
}  // namespace dlock::contract

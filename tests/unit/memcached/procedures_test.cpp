// SPDX-License-Identifier: Apache-2.0
//
// How locks are taken, renewed and given back on a server that fails at each step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/memcached/lock/acquire.hpp"
#include "backends/memcached/lock/look.hpp"
#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/lock/renew.hpp"
#include "tests/unit/memcached/fake.hpp"

namespace dlock::memcached {
namespace {

using namespace std::chrono_literals;
using Fault = FakeServer::Fault;
using testing::ElementsAre;

// Nothing here waits.
AcquireResult acquire(FakeServer& server, AcquireOrder order) {
  return finish(memcached::acquire(static_cast<Commands&>(server), std::move(order)));
}
ReleaseResult release(FakeServer& server, ReleaseOrder order) {
  return finish(memcached::release(static_cast<Commands&>(server), std::move(order)));
}
std::vector<RenewResult> renew(FakeServer& server, std::vector<RenewOrder> orders) {
  return finish(memcached::renew(static_cast<Commands&>(server), std::move(orders)));
}
PollResult look_all(FakeServer& server, std::vector<std::string> keys,
                    std::vector<ReleaseOrder> strays) {
  return finish(
      memcached::look_all(static_cast<Commands&>(server), std::move(keys), std::move(strays)));
}
Peek peek(FakeServer& server, std::string key, std::string token_key) {
  return finish(
      memcached::peek(static_cast<Commands&>(server), std::move(key), std::move(token_key)));
}
EvictAnswer evict(FakeServer& server, std::uint64_t token, bool at_once, bool is_marked = false) {
  EvictRequest request{"k", token};
  request.mark.by.host = "web1";
  request.mark.reason = "stuck";
  request.at_once = at_once;
  request.is_marked = is_marked;
  return finish(memcached::evict(static_cast<Commands&>(server), {"k", "k%t"}, request));
}

AcquireOrder order_for(const std::string& id, bool in_doubt = false) {
  AcquireOrder order;
  order.key = "k";
  order.token_key = "k%t";
  order.value.owner.id = id;
  order.value.name = "lock";
  order.value.lease = 10s;
  order.in_doubt = in_doubt;
  return order;
}

RenewOrder renewal_of(const std::string& id, const std::string& key = "k") {
  RenewOrder order;
  order.key = key;
  order.value = order_for(id).value;
  return order;
}

std::string value_of(const std::string& id) { return write_value(order_for(id).value); }

class MemcachedProcedures : public testing::Test {
 protected:
  void SetUp() override { server.put("k%t", "100"); }
  bool is_held_by(const std::string& id) {
    return server.has("k") && belongs_to(server.items["k"].value, id);
  }
  FakeServer server;
};

TEST_F(MemcachedProcedures, NothingIsAskedForBeforeTheSelfTestIsPassed) {
  server.self_tests = {{Outcome::done, {}, {}}};
  EXPECT_EQ(acquire(server, order_for("me")).status, ClaimStatus::granted);
  EXPECT_THAT(server.log, ElementsAre("self-test", "add", "incr"));
}

TEST_F(MemcachedProcedures, AServerThatFailsTheSelfTestIsAskedForNothing) {
  server.self_tests = {{Outcome::refused, failure(Error::self_test_failed, "why"), {}}, {}};
  const auto result = acquire(server, order_for("me"));
  EXPECT_EQ(result.status, ClaimStatus::failed);
  EXPECT_EQ(result.failure.error, errc::config_unsafe);
  EXPECT_EQ(result.failure.text, "why");
  EXPECT_THAT(server.log, ElementsAre("self-test"));
}

TEST_F(MemcachedProcedures, ASelfTestWithoutAnAnswerIsSurelyNotDone) {
  server.self_tests = {{Outcome::unavailable, failure(Error::no_answer), {}}, {}};
  EXPECT_EQ(acquire(server, order_for("me")).status, ClaimStatus::unavailable);
  EXPECT_THAT(server.log, ElementsAre("self-test"));
}

TEST_F(MemcachedProcedures, AServerThatIsReplacedAgainAndAgainIsNotAskedForALock) {
  server.self_tests.assign(3, {Outcome::done, {}, {}});
  EXPECT_EQ(acquire(server, order_for("me")).status, ClaimStatus::unavailable);
  EXPECT_THAT(server.log, ElementsAre("self-test", "self-test"));
}

TEST_F(MemcachedProcedures, AcquireIsTwoRequests) {
  const auto sent = server.clock;
  const auto result = acquire(server, order_for("me"));
  EXPECT_EQ(result.status, ClaimStatus::granted);
  EXPECT_EQ(result.token, 101U);
  EXPECT_EQ(result.sent, sent);
  EXPECT_THAT(server.log, ElementsAre("add", "incr"));
  EXPECT_EQ(server.items["k"].until, sent + 11s);
}

// Its lease may be over by now, and the lock somebody else's.
TEST_F(MemcachedProcedures, AnAddThatWasAnsweredSlowlyIsLookedAtAndCountsFromThere) {
  const auto before = server.clock;
  server.faults = {Fault::slow};
  auto result = acquire(server, order_for("me"));
  EXPECT_EQ(result.status, ClaimStatus::granted);
  EXPECT_EQ(result.sent, before + 1s);
  EXPECT_THAT(server.log, ElementsAre("add", "gets", "cas", "incr"));
  server.items.erase("k");
  server.faults = {Fault::slow};
  server.meanwhile = [&](const std::string& command) {
    if (command == "gets") server.put("k", value_of("other"));
  };
  result = acquire(server, order_for("me"));
  EXPECT_EQ(result.status, ClaimStatus::busy);
  EXPECT_TRUE(is_held_by("other"));
}

TEST_F(MemcachedProcedures, ACounterIsMadeInAThird) {
  server.items.erase("k%t");
  const auto result = acquire(server, order_for("me"));
  EXPECT_EQ(result.status, ClaimStatus::granted);
  EXPECT_EQ(result.token, 1'700'000'000'000'000U);
  EXPECT_THAT(server.log, ElementsAre("add", "incr", "add"));
}

TEST_F(MemcachedProcedures, TheTokenIsAboveTheFloor) {
  auto order = order_for("me");
  order.min_token = 5000;
  EXPECT_EQ(acquire(server, order).token, 5001U);
  server.items.clear();
  order.min_token = 1'900'000'000'000'000;
  EXPECT_EQ(acquire(server, order).token, 1'900'000'000'000'001U);
}

TEST_F(MemcachedProcedures, BusyIsOneRequestAndLeavesTheHolderAlone) {
  server.put("k", value_of("other"));
  EXPECT_EQ(acquire(server, order_for("me")).status, ClaimStatus::busy);
  EXPECT_THAT(server.log, ElementsAre("add"));
  server.put("k", "a plain value of another client");
  EXPECT_EQ(acquire(server, order_for("me", true)).status, ClaimStatus::busy);
}

TEST_F(MemcachedProcedures, ANewerValueIsRefusedWhereItIsRead) {
  const std::string newer = "dlock=2\nwho=other\n";
  const auto refusal = "k has format 2; this program reads format 1; upgrade it";
  server.put("k", newer);
  auto result = acquire(server, order_for("me", true));
  EXPECT_EQ(result.status, ClaimStatus::failed);
  EXPECT_EQ(result.failure.text, refusal);
  auto order = order_for("me");
  order.adoption = std::make_shared<Adoption>(Adoption{"other", 17, "proof"});
  result = acquire(server, order);
  EXPECT_EQ(result.status, ClaimStatus::failed);
  EXPECT_EQ(result.failure.text, refusal);
  for (const bool at_once : {false, true}) {
    EXPECT_EQ(evict(server, 100, at_once).failure.text, refusal);
  }
  EXPECT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::not_holder);
  const auto renewed = renew(server, {renewal_of("me")}).front();
  EXPECT_EQ(renewed.status, ExtendStatus::gone);
  EXPECT_EQ(renewed.reason, LossReason::taken);
  EXPECT_EQ(server.items["k"].value, newer);
}

struct AcquireRow {
  const char* what;
  std::vector<Fault> faults;
  bool in_doubt;
  ClaimStatus status;
  bool holds;  ///< our key is in the store afterwards
  bool late_add;
};

TEST_F(MemcachedProcedures, AcquireUnderFaults) {
  const std::vector<AcquireRow> rows{
      {"not sent", {Fault::not_sent}, false, ClaimStatus::unavailable, false, false},
      {"add lost", {Fault::request_lost}, false, ClaimStatus::unknown, false, true},
      {"reply lost", {Fault::reply_lost}, false, ClaimStatus::unknown, true, true},
      {"broken, not done", {Fault::broken}, false, ClaimStatus::granted, true, true},
      {"broken, done: adopted", {Fault::broken_after}, false, ClaimStatus::granted, true, true},
      {"broken, then gone",
       {Fault::broken, Fault::not_sent},
       false,
       ClaimStatus::unknown,
       false,
       true},
      {"in doubt, absent", {}, true, ClaimStatus::granted, true, false},
      {"in doubt, cannot look", {Fault::not_sent}, true, ClaimStatus::unavailable, false, false},
      {"slow: confirmed", {Fault::slow}, false, ClaimStatus::granted, true, false},
      {"slow, and then it cannot look",
       {Fault::slow, Fault::not_sent},
       false,
       ClaimStatus::unknown,
       true,
       false},
      {"always slow: granted",
       {Fault::slow, Fault::none, Fault::slow, Fault::none, Fault::slow},
       false,
       ClaimStatus::granted,
       true,
       false},
      {"no memory", {Fault::no_memory}, false, ClaimStatus::unavailable, false, false},
      {"token lost", {Fault::none, Fault::request_lost}, false, ClaimStatus::unknown, true, false},
      {"token broken, again",
       {Fault::none, Fault::broken},
       false,
       ClaimStatus::granted,
       true,
       false},
      {"counter is no number",
       {Fault::none, Fault::not_a_number},
       false,
       ClaimStatus::failed,
       false,
       false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    server.items.erase("k");
    server.faults.assign(row.faults.begin(), row.faults.end());
    const auto result = acquire(server, order_for("me", row.in_doubt));
    EXPECT_EQ(result.status, row.status);
    EXPECT_EQ(is_held_by("me"), row.holds);
    EXPECT_EQ(result.late_add, row.late_add);
    EXPECT_EQ(result.token.has_value(), row.status == ClaimStatus::granted);
    server.faults.clear();
  }
}

// F10: asked again, what the lost reply said is found out, and the lease begins anew.
TEST_F(MemcachedProcedures, F10_AnAddOfUnknownOutcomeIsAdopted) {
  server.faults = {Fault::reply_lost};
  EXPECT_EQ(acquire(server, order_for("me")).status, ClaimStatus::unknown);
  server.clock += 5s;
  server.log.clear();
  const auto result = acquire(server, order_for("me", true));
  EXPECT_EQ(result.status, ClaimStatus::granted);
  EXPECT_EQ(result.sent, server.clock);
  EXPECT_EQ(server.items["k"].until, server.clock + 11s);
  EXPECT_THAT(server.log, ElementsAre("gets", "cas", "incr"));
}

TEST_F(MemcachedProcedures, AnAddThatComesInBetweenIsAdopted) {
  // The first add arrives between our looking and our second add.
  server.meanwhile = [&](const std::string& command) {
    if (command == "add") server.put("k", value_of("me"));
  };
  EXPECT_EQ(acquire(server, order_for("me", true)).status, ClaimStatus::granted);
  EXPECT_TRUE(is_held_by("me"));
}

TEST_F(MemcachedProcedures, F02_ReleaseDeletesOnlyOurOwn) {
  server.put("k", value_of("me"));
  EXPECT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::released);
  EXPECT_FALSE(server.has("k"));
  EXPECT_THAT(server.log, ElementsAre("gets", "cas"));

  server.put("k", value_of("other"));
  EXPECT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::not_holder);
  EXPECT_TRUE(is_held_by("other"));

  // Between looking and deleting it expires, and somebody else gets it.
  server.put("k", value_of("me"));
  server.meanwhile = [&](const std::string& command) {
    if (command == "cas") server.put("k", value_of("other"));
  };
  EXPECT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::not_holder);
  EXPECT_TRUE(is_held_by("other"));
}

// Where the server says the number of what it stores, that very value is deleted in one request.
TEST_F(MemcachedProcedures, F02_ReleaseByNumberDeletesOnlyWhatWasStored) {
  server.tells_numbers = true;
  auto result = acquire(server, order_for("me"));
  ASSERT_NE(result.number.cas, 0U);
  server.log.clear();
  EXPECT_EQ(release(server, {"k", "me", result.number}).status, ReleaseStatus::released);
  EXPECT_THAT(server.log, ElementsAre("remove"));
  EXPECT_FALSE(server.has("k"));
  EXPECT_EQ(release(server, {"k", "me", result.number}).status, ReleaseStatus::not_holder);

  // A renewal of ours that was not answered has changed the number: looked at.
  result = acquire(server, order_for("me"));
  server.put("k", value_of("me"));
  server.log.clear();
  EXPECT_EQ(release(server, {"k", "me", result.number}).status, ReleaseStatus::released);
  EXPECT_THAT(server.log, ElementsAre("remove", "gets", "cas"));

  // Somebody else has it by now.
  result = acquire(server, order_for("me"));
  server.put("k", value_of("other"));
  EXPECT_EQ(release(server, {"k", "me", result.number}).status, ReleaseStatus::not_holder);
  EXPECT_TRUE(is_held_by("other"));
}

// After a restart another's value may have the same number.
TEST_F(MemcachedProcedures, F02_ANumberOfAnEarlierConnectionSaysNothing) {
  server.tells_numbers = true;
  const auto result = acquire(server, order_for("me"));
  server.items["k"] = {value_of("other"), result.number.cas, kNever};
  ++server.era;
  EXPECT_EQ(release(server, {"k", "me", result.number}).status, ReleaseStatus::not_holder);
  EXPECT_TRUE(is_held_by("other"));
}

TEST_F(MemcachedProcedures, ReleaseByNumberUnderFaults) {
  struct Row {
    std::vector<Fault> faults;
    ReleaseStatus status;
    bool left;
  };
  const std::vector<Row> rows{
      {{Fault::not_sent}, ReleaseStatus::unavailable, true},
      {{Fault::request_lost}, ReleaseStatus::unknown, true},
      {{Fault::reply_lost}, ReleaseStatus::unknown, false},
      {{Fault::broken}, ReleaseStatus::released, false},
      {{Fault::broken_after}, ReleaseStatus::released, false},
      {{Fault::no_memory}, ReleaseStatus::released, false},
  };
  server.tells_numbers = true;
  for (const auto& row : rows) {
    server.items.erase("k");
    const auto number = acquire(server, order_for("me")).number;
    server.faults.assign(row.faults.begin(), row.faults.end());
    EXPECT_EQ(release(server, {"k", "me", number}).status, row.status);
    EXPECT_EQ(server.has("k"), row.left);
    server.faults.clear();
  }
}

TEST_F(MemcachedProcedures, ReleaseUnderFaults) {
  struct Row {
    std::vector<Fault> faults;
    ReleaseStatus status;
    bool left;
  };
  const std::vector<Row> rows{
      {{Fault::not_sent}, ReleaseStatus::unavailable, true},
      {{Fault::none, Fault::request_lost}, ReleaseStatus::unknown, true},
      {{Fault::none, Fault::reply_lost}, ReleaseStatus::unknown, false},
      {{Fault::none, Fault::broken}, ReleaseStatus::released, false},
      {{Fault::none, Fault::broken_after}, ReleaseStatus::released, false},
      {{Fault::none, Fault::no_memory}, ReleaseStatus::unavailable, true},
  };
  for (const auto& row : rows) {
    server.put("k", value_of("me"));
    server.faults.assign(row.faults.begin(), row.faults.end());
    EXPECT_EQ(release(server, {"k", "me", {}}).status, row.status);
    EXPECT_EQ(server.has("k"), row.left);
    server.faults.clear();
  }
}

TEST_F(MemcachedProcedures, RenewalIsOneLookAndOneRequestEach) {
  server.put("a", value_of("me"));
  server.put("b", value_of("me"));
  server.put("c", value_of("other"));
  const auto results = renew(server, {renewal_of("me", "a"), renewal_of("me", "b"),
                                      renewal_of("me", "c"), renewal_of("me", "d")});
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].status, ExtendStatus::extended);
  EXPECT_EQ(results[0].sent, server.clock);
  EXPECT_EQ(results[1].status, ExtendStatus::extended);
  EXPECT_EQ(results[2].status, ExtendStatus::gone);
  EXPECT_EQ(results[2].reason, LossReason::taken);
  EXPECT_EQ(results[3].reason, LossReason::removed);
  EXPECT_THAT(server.log, ElementsAre("gets", "cas", "cas", "stats"));
  EXPECT_EQ(server.items["a"].until, server.clock + 11s);
}

TEST_F(MemcachedProcedures, F19_AGoneLockIsExplained) {
  auto order = renewal_of("me");
  server.now_says.evictions = 3;
  EXPECT_EQ(renew(server, {order})[0].reason, LossReason::evicted);
  server.now_says.pid = 77;
  EXPECT_EQ(renew(server, {order})[0].reason, LossReason::store_restarted);
}

TEST_F(MemcachedProcedures, RenewalUnderFaults) {
  struct Row {
    const char* what;
    std::vector<Fault> faults;
    ExtendStatus first;
    ExtendStatus second;
  };
  const std::vector<Row> rows{
      {"cannot look", {Fault::not_sent}, ExtendStatus::unavailable, ExtendStatus::unavailable},
      {"first lost",
       {Fault::none, Fault::request_lost},
       ExtendStatus::unknown,
       ExtendStatus::extended},
      {"second lost",
       {Fault::none, Fault::none, Fault::reply_lost},
       ExtendStatus::extended,
       ExtendStatus::unknown},
      {"slow: confirmed",
       {Fault::none, Fault::slow},
       ExtendStatus::extended,
       ExtendStatus::extended},
      {"no memory",
       {Fault::none, Fault::no_memory},
       ExtendStatus::unavailable,
       ExtendStatus::extended},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    server.put("a", value_of("me"));
    server.put("b", value_of("me"));
    server.faults.assign(row.faults.begin(), row.faults.end());
    const auto results = renew(server, {renewal_of("me", "a"), renewal_of("me", "b")});
    EXPECT_EQ(results[0].status, row.first);
    EXPECT_EQ(results[1].status, row.second);
    server.faults.clear();
  }
}

TEST_F(MemcachedProcedures, ASlowRenewalCountsFromItsConfirmation) {
  server.put("k", value_of("me"));
  const auto before = server.clock;
  server.faults = {Fault::none, Fault::slow};
  const auto results = renew(server, {renewal_of("me")});
  EXPECT_EQ(results[0].status, ExtendStatus::extended);
  EXPECT_EQ(results[0].sent, before + 1s);
  EXPECT_THAT(server.log, ElementsAre("gets", "cas", "gets", "cas", "stats"));
}

TEST_F(MemcachedProcedures, ARenewalOfOursInBetweenIsNoLoss) {
  server.put("k", value_of("me"));
  bool done = false;
  server.meanwhile = [&](const std::string& command) {
    if (command == "cas" && !std::exchange(done, true)) server.put("k", value_of("me"));
  };
  EXPECT_EQ(renew(server, {renewal_of("me")})[0].status, ExtendStatus::extended);
}

TEST_F(MemcachedProcedures, EvictTakesTheTokenAtItsWord) {
  for (const bool at_once : {true, false}) {
    EXPECT_EQ(evict(server, 100, at_once).failure.error, make_error_code(Error::not_held));
    server.put("k", value_of("me"));
    EXPECT_EQ(evict(server, 99, at_once).failure.error,
              make_error_code(Error::held_with_other_token));
    EXPECT_TRUE(is_held_by("me"));
    const auto evicted = evict(server, 100, at_once);
    EXPECT_FALSE(evicted.failure.error);
    EXPECT_EQ(evicted.is_free, at_once);
    EXPECT_EQ(server.has("k"), !at_once);
  }
}

TEST_F(MemcachedProcedures, AMarkRefusesRenewalsAndItsOwnersReleaseDeletesIt) {
  server.put("k", value_of("me"));
  ASSERT_FALSE(evict(server, 100, false).failure.error);
  ASSERT_FALSE(evict(server, 100, false).failure.error) << "again";
  EXPECT_FALSE(is_held_by("me")) << "an older version must not renew it";
  const auto renewed = renew(server, {renewal_of("me")})[0];
  EXPECT_EQ(renewed.status, ExtendStatus::gone);
  EXPECT_EQ(renewed.reason, LossReason::broken);
  EXPECT_NE(renewed.broken_by.find("web1: stuck"), std::string::npos) << renewed.broken_by;
  EXPECT_EQ(release(server, {"k", "other", {}}).status, ReleaseStatus::not_holder);
  EXPECT_TRUE(server.has("k"));
  EXPECT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::released);
  EXPECT_FALSE(server.has("k"));
}

// The next holder has stored its value, and has not counted yet.
TEST_F(MemcachedProcedures, AWaitForTheEndOfAMarkDoesNotMarkTheNextHolder) {
  server.put("k", value_of("me"));
  ASSERT_FALSE(evict(server, 100, false).failure.error);
  EXPECT_FALSE(evict(server, 100, false, true).failure.error) << "marked";
  ASSERT_EQ(release(server, {"k", "me", {}}).status, ReleaseStatus::released);
  server.put("k", value_of("next"));
  EXPECT_EQ(evict(server, 100, false, true).failure.error, make_error_code(Error::not_held));
  EXPECT_TRUE(is_held_by("next"));
}

TEST_F(MemcachedProcedures, AnAcquireInDoubtKeepsNoMarkedRecord) {
  server.put("k", value_of("me"));
  ASSERT_FALSE(evict(server, 100, false).failure.error);
  const auto acquired = acquire(server, order_for("me", true));
  EXPECT_EQ(acquired.status, ClaimStatus::granted);
  EXPECT_EQ(acquired.token, 101U) << "freed, and acquired anew";
}

TEST_F(MemcachedProcedures, AMarkedGrantIsNotAdopted) {
  auto exported = order_for("exporter").value;
  exported.proof = "secret";
  server.put("k", write_value(exported));
  ASSERT_FALSE(evict(server, 100, false).failure.error);
  auto order = order_for("me");
  order.adoption = std::make_shared<const Adoption>(Adoption{"exporter", 100, "secret"});
  EXPECT_EQ(acquire(server, order).status, ClaimStatus::failed);
  EXPECT_FALSE(is_held_by("me"));
  EXPECT_EQ(renew(server, {renewal_of("exporter")})[0].reason, LossReason::broken);
}

TEST_F(MemcachedProcedures, ARenewalThatIsQuickerThanTheMarkKeepsTheLock) {
  server.put("k", value_of("me"));
  bool done = false;
  server.meanwhile = [&](const std::string& command) {
    if (command == "cas" && !std::exchange(done, true)) server.put("k", value_of("me"));
  };
  EXPECT_FALSE(evict(server, 100, false).failure.error);
  EXPECT_EQ(renew(server, {renewal_of("me")})[0].reason, LossReason::broken);
}

TEST_F(MemcachedProcedures, AValueOfAnotherProgramIsBrokenAtOnceOnly) {
  server.put("k", "whatever");
  EXPECT_EQ(evict(server, 100, false).failure.error, errc::not_supported);
  EXPECT_TRUE(server.has("k"));
  EXPECT_TRUE(evict(server, 100, true).is_free);
  EXPECT_FALSE(server.has("k"));
}

TEST_F(MemcachedProcedures, ThePollFindsWhatIsFreeAndSweepsStrays) {
  server.put("a", value_of("other"));
  server.put("s", value_of("late"));
  const auto result = look_all(server, {"a", "b"}, {{"s", "late", {}}, {"a", "late", {}}});
  EXPECT_TRUE(result.answer.done());
  EXPECT_THAT(result.free, ElementsAre("b"));
  EXPECT_FALSE(server.has("s"));
  EXPECT_TRUE(server.has("a"));
}

TEST_F(MemcachedProcedures, StatusReadsTheCounterBesideTheLock) {
  EXPECT_FALSE(describe("lock", peek(server, "k", "k%t"), 0).held);
  acquire(server, order_for("me"));
  const auto now_ms = server.wall_us / 1000 + 4000;
  const auto status = describe("lock", peek(server, "k", "k%t"), now_ms);
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, 101U);
  EXPECT_EQ(status.owner->id, "me");
  EXPECT_EQ(status.held_for, 4000ms);
  EXPECT_EQ(status.remaining, 6000ms);
  server.put("k", "1");
  EXPECT_TRUE(describe("lock", peek(server, "k", "k%t"), now_ms).held);
}

TEST_F(MemcachedProcedures, WhatIsAdoptedIsAsOldAsItWasMade) {
  auto made = order_for("me").value;
  made.since_ms = 17;
  server.put("k", write_value(made));
  const auto result = acquire(server, order_for("me", true));
  EXPECT_EQ(result.status, ClaimStatus::granted);
  EXPECT_EQ(result.since_ms, 17);
}

}  // namespace
}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// Grants that change process: exported by who has them, adopted once by another, never free in
// between, and never believed in by both.
#include <future>

#include "core/store/grant_text.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

/// Long enough for a busy machine.
constexpr auto kWithin = 20s;

error_code adopting(LockManager& manager, std::string_view text, AcquireOptions options = {}) {
  error_code ec;
  const auto held = manager.adopt(text, options, ec);
  return ec;
}

error_code exporting(LockHandle& held, ExportOptions options = {}) {
  error_code ec;
  const auto text = held.export_grant(options, ec);
  EXPECT_EQ(text.empty(), static_cast<bool>(ec));
  return ec;
}

class AdoptionContract : public Contract {
 protected:
  bool adopts() {
    if (capabilities().can_adopt) return true;
    auto manager = open();
    auto held = manager.lock("a")->acquire({.wait = 60s});
    Diagnostics diagnostics;
    error_code ec;
    EXPECT_EQ(held.export_grant({.diagnostics = &diagnostics}, ec), "");
    EXPECT_EQ(ec, errc::not_supported);
    EXPECT_FALSE(diagnostics.server_text.empty());
    EXPECT_EQ(held.state(), HandleState::held);
    const auto text = text_of(held, std::string(36, '0'));
    EXPECT_EQ(adopting(observer(), text), errc::not_supported);
    EXPECT_FALSE(held.release());
    return false;
  }
  /// As somebody would write it who knows all but the secret.
  static std::string text_of(const LockHandle& held, const std::string& owner_id) {
    const core::GrantText text{
        {held.name(), held.store(), held.token().value_or(1)}, owner_id, std::string(32, 'a')};
    return text.write();
  }
  std::optional<std::uint64_t> shown_token() { return observer().status("a").token; }
};
DLOCK_CONTRACT(AdoptionContract);

TEST_P(AdoptionContract, WhoAdoptsHoldsItWithAHigherToken) {
  if (!adopts()) return;
  auto exporter = open();
  auto held = exporter.lock("a")->acquire({.wait = 60s});
  const auto token = held.token();
  const auto text = held.export_grant({.within = kWithin});
  EXPECT_FALSE(held);
  EXPECT_EQ(held.state(), HandleState::released);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(ExportedGrant::read(text).name, "a");
  EXPECT_EQ(ExportedGrant::read(text).token, token);
  auto adopter = open();
  auto adopted = adopter.adopt(text);
  EXPECT_EQ(adopted.name(), "a");
  EXPECT_EQ(adopted.state(), HandleState::held);
  EXPECT_GT(adopted.token(), token);
  EXPECT_EQ(shown_token(), adopted.token());
  EXPECT_FALSE(adopted.release());
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(AdoptionContract, NobodyGetsItInBetween) {
  if (!adopts()) return;
  auto exporter = open();
  auto held = exporter.lock("a")->acquire({.wait = 60s});
  const auto waiter = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  const auto text = held.export_grant({.within = kWithin});
  EXPECT_FALSE(observer().lock("a")->try_acquire());
  EXPECT_FALSE(waiter->is_held());
  auto adopter = open();
  auto adopted = adopter.adopt(text);
  EXPECT_FALSE(observer().lock("a")->try_acquire());
  EXPECT_FALSE(waiter->is_held());
  const auto token = adopted.token();
  EXPECT_FALSE(adopted.release());
  EXPECT_GT(waiter->wait_held(patience()), token);
}

TEST_P(AdoptionContract, ItIsAdoptedOnce) {
  if (!adopts()) return;
  auto exporter = open();
  const auto text = exporter.lock("a")->acquire({.wait = 60s}).export_grant({.within = kWithin});
  auto adopted = observer().adopt(text);
  auto another = open();
  Diagnostics diagnostics;
  error_code ec;
  EXPECT_FALSE(another.adopt(text, {.diagnostics = &diagnostics}, ec));
  EXPECT_EQ(ec, errc::not_holder) << ec.message();
  EXPECT_NE(diagnostics.server_text.find("adopted before"), std::string::npos)
      << diagnostics.server_text;
  EXPECT_EQ(adopting(exporter, text), errc::not_holder);
  EXPECT_EQ(adopting(observer(), text), errc::not_holder);
  EXPECT_EQ(adopted.state(), HandleState::held);
  EXPECT_FALSE(adopted.release());
  EXPECT_EQ(adopting(another, text), errc::not_holder);
}

TEST_P(AdoptionContract, OfManyAtOnceOneAdopts) {
  if (!adopts()) return;
  auto exporter = open();
  const auto text = exporter.lock("a")->acquire({.wait = 60s}).export_grant({.within = kWithin});
  std::vector<std::future<LockHandle>> tries;
  std::vector<LockManager> managers;
  for (int i = 0; i < 4; ++i) managers.push_back(open());
  for (auto& manager : managers) {
    for (int i = 0; i < 2; ++i) {
      tries.push_back(std::async(std::launch::async, [&manager, &text] {
        error_code ec;
        return manager.adopt(text, {}, ec);
      }));
    }
  }
  std::vector<LockHandle> all;
  for (auto& each : tries) all.push_back(each.get());
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& one) { return bool(one); }), 1);
}

TEST_P(AdoptionContract, TheExportersEndLeavesTheAdopterAlone) {
  if (!adopts()) return;
  auto exporter = open();
  LockHandle adopted;
  ASSERT_TRUE(eventually(patience(), [&] {  // a busy machine may be too late for it
    auto text = exporter.lock("a")->acquire({.wait = 60s}).export_grant({.within = 200ms});
    error_code ec;
    adopted = observer().adopt(text, {}, ec);
    return static_cast<bool>(adopted);
  }));
  // Its time is over, and its manager closes.
  EXPECT_FALSE(eventually(within(1s), [&] { return adopted.state() != HandleState::held; }));
  exporter.close();
  EXPECT_EQ(shown_token(), adopted.token());
  EXPECT_EQ(adopted.state(), HandleState::held);
  EXPECT_FALSE(adopted.release());
}

TEST_P(AdoptionContract, WhatNobodyAdoptsIsGivenBack) {
  if (!adopts()) return;
  auto exporter = open();
  const auto text = exporter.lock("a")->acquire({.wait = 60s}).export_grant({.within = 300ms});
  const auto next = observer().lock("a")->acquire({.wait = 10s});
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_EQ(adopting(exporter, text), errc::not_holder);
  EXPECT_EQ(next.state(), HandleState::held);
}

TEST_P(AdoptionContract, AManagerThatClosesGivesBackWhatNobodyHasAdopted) {
  if (!adopts()) return;
  auto exporter = open();
  const auto text = exporter.lock("a")->acquire({.wait = 60s}).export_grant({.within = kWithin});
  exporter.close();
  EXPECT_FALSE(observer().status("a").held);
  EXPECT_EQ(adopting(observer(), text), errc::not_holder);
}

TEST_P(AdoptionContract, WhoWorksUnderItIsToldToStopAndThatIsNoLoss) {
  if (!adopts()) return;
  std::atomic<int> losses = 0;
  auto options = open_options();
  options.on_loss = [&losses](const Loss&) { ++losses; };
  auto exporter = LockManager::open(url(), options);
  auto held = exporter.lock("a")->acquire({.wait = 60s});
  const auto stop = held.stop_token();
  held.on_state([&losses](HandleState, LossReason) { ++losses; });
  const auto text = held.export_grant({.within = kWithin});
  EXPECT_TRUE(stop.stop_requested());
  auto adopted = observer().adopt(text);
  EXPECT_FALSE(adopted.release());
  exporter.close();
  EXPECT_EQ(losses, 0);
}

TEST_P(AdoptionContract, ACallbackMayExport) {
  if (!adopts() || !capabilities().can_ask) return;
  auto exporter = open();
  auto held = exporter.lock("a")->acquire({.wait = 60s, .revocable = true});
  std::promise<std::string> exported;
  held.on_revoke(
      [&](const Revocation&) { exported.set_value(held.export_grant({.within = kWithin})); });
  auto text = exported.get_future();
  observer().ask("a");
  ASSERT_EQ(text.wait_until(patience()), std::future_status::ready);
  EXPECT_EQ(observer().adopt(text.get()).state(), HandleState::held);
}

TEST_P(AdoptionContract, WhatWasNotExportedIsNotAdopted) {
  if (!adopts()) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  const auto status = observer().status("a");
  ASSERT_TRUE(status.owner);
  const auto forged = text_of(held, status.owner->id);
  EXPECT_EQ(adopting(observer(), forged), errc::not_holder);
  EXPECT_EQ(held.state(), HandleState::held);
  const auto text = held.export_grant({.within = kWithin});
  EXPECT_EQ(adopting(observer(), forged), errc::not_holder) << "not without it";
  EXPECT_EQ(observer().adopt(text).state(), HandleState::held);
}

TEST_P(AdoptionContract, WhatIsNoTextOfTheLocksStoreIsRefused) {
  if (!adopts()) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  EXPECT_EQ(exporting(held, {.within = 0ms}), errc::invalid_argument);
  EXPECT_EQ(exporting(held, {.within = 25h}), errc::invalid_argument);
  EXPECT_EQ(held.state(), HandleState::held);
  const auto text = held.export_grant({.within = kWithin});
  EXPECT_EQ(adopting(observer(), "dlock-grant1:"), errc::invalid_argument);
  EXPECT_EQ(adopting(observer(), text, {.mode = Mode::shared}), errc::invalid_argument);
  const core::GrantText elsewhere{
      {"a", "elsewhere", 1}, std::string(36, 'a'), std::string(32, 'a')};
  EXPECT_EQ(adopting(observer(), elsewhere.write()), errc::config_invalid);
  EXPECT_EQ(observer().adopt(text + "\n").state(), HandleState::held);
}

TEST_P(AdoptionContract, WhatIsNotHeldAloneIsNotExported) {
  if (!adopts()) return;
  auto manager = open();
  const auto stays = [](LockHandle held) {
    EXPECT_EQ(exporting(held), errc::not_supported);
    EXPECT_EQ(held.state(), HandleState::held);
  };
  stays(manager.lock_all({"a", "b"})->acquire({.wait = 60s}));
  if (capabilities().shared_mode) {
    stays(manager.lock("a")->acquire({.wait = 60s, .mode = Mode::shared}));
  }
  if (capabilities().permits) stays(manager.semaphore("s", 2).acquire(1, {.wait = 60s}));
  LockHandle nothing;
  EXPECT_EQ(exporting(nothing), errc::lock_lost);
}

TEST_P(AdoptionContract, WhatWasBrokenIsNeitherExportedNorAdopted) {
  if (!adopts() || !capabilities().can_evict) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  const auto token = held.token().value();
  const auto text = held.export_grant({.within = kWithin});
  observer().evict("a", token, {.at_once = true});
  EXPECT_EQ(adopting(observer(), text), errc::not_holder);
  auto next = manager.lock("a")->acquire({.wait = 60s});
  observer().evict("a", next.token().value(), {.at_once = true});
  EXPECT_EQ(exporting(next), errc::lock_lost);
}

TEST_P(AdoptionContract, WhoHasAdoptedMayExportAgain) {
  if (!adopts()) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  for (int i = 0; i < 5; ++i) {
    const auto token = held.token();
    held = observer().adopt(held.export_grant({.within = kWithin}), {.wait = 60s});
    EXPECT_GT(held.token(), token);
  }
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(becomes_free("a"));
}

class AdoptionOfProcesses : public AdoptionContract {
 protected:
  std::unique_ptr<ProcessPeer> exporter() const {
    PeerKind kind;
    kind.exports = true;
    return std::make_unique<ProcessPeer>(url(), "a", kind);
  }
  std::unique_ptr<ProcessPeer> adopter(const std::string& text) const {
    PeerKind kind;
    kind.adopts = text;
    return std::make_unique<ProcessPeer>(url(), "a", kind);
  }
};
DLOCK_CONTRACT_OF_PROCESSES(AdoptionOfProcesses);

TEST_P(AdoptionOfProcesses, AKilledExportersGrantIsAdopted) {
  if (!adopts()) return;
  const auto first = exporter();
  const auto text = first->wait_exported(patience());
  ASSERT_TRUE(text);
  first->process().kill_and_wait();
  const auto next = adopter(*text);
  EXPECT_GT(next->wait_held(patience()), first->wait_held(patience()));
  EXPECT_FALSE(observer().lock("a")->try_acquire());
  next->release();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(AdoptionOfProcesses, AKilledExportersGrantEndsWithItsLease) {
  if (!adopts()) return;
  const auto first = exporter();
  const auto text = first->wait_exported(patience());
  ASSERT_TRUE(text);
  first->process().kill_and_wait();
  const auto held = observer().lock("a")->acquire({.wait = harness().dead_holder_bound() + 10s});
  EXPECT_EQ(adopting(observer(), *text), errc::not_holder);
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_P(AdoptionOfProcesses, AStoppedExporterDoesNotTakeItBack) {
  if (!adopts()) return;
  const auto first = exporter();
  const auto text = first->wait_exported(patience());
  ASSERT_TRUE(text);
  ASSERT_TRUE(first->process().pause());
  auto adopted = observer().adopt(*text);
  ASSERT_TRUE(first->process().resume());
  first->release();
  EXPECT_EQ(first->wait_lost(within(0s)), std::nullopt);
  EXPECT_EQ(shown_token(), adopted.token());
  EXPECT_EQ(adopted.state(), HandleState::held);
  EXPECT_FALSE(adopted.release());
}

TEST_P(AdoptionOfProcesses, OfTwoProcessesOneAdopts) {
  if (!adopts()) return;
  for (int round = 0; round < 5; ++round) {
    const auto first = exporter();
    const auto text = first->wait_exported(patience());
    ASSERT_TRUE(text);
    const auto one = adopter(*text);
    const auto other = adopter(*text);
    const bool is_one = one->wait_decided(patience()).value_or(false);
    const bool is_other = other->wait_decided(patience()).value_or(false);
    EXPECT_NE(is_one, is_other) << "exactly one";
    one->release();
    other->release();
    first->release();
    EXPECT_TRUE(becomes_free("a"));
  }
}

}  // namespace
}  // namespace dlock::contract

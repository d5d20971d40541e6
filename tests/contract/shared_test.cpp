// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers: who holds a lock together with whom, what is told of it, and its end. A
// store that does not declare shared mode has to refuse it.
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SharedContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const bool refused = std::string_view(test->name()).starts_with("AStoreWithout");
    if (!HasFatalFailure() && capabilities().shared_mode == refused) {
      GTEST_SKIP() << (refused ? "it has shared mode" : "it has no shared mode");
    }
  }
};
DLOCK_CONTRACT(SharedContract);

constexpr AcquireOptions kReader{.wait = 30s, .mode = Mode::shared};
constexpr AcquireOptions kReaderAtOnce{.wait = 0ms, .mode = Mode::shared};

TEST_P(SharedContract, AStoreWithoutSharedModeRefusesItAndSaysWhy) {
  auto manager = open();
  Diagnostics why;
  error_code ec;
  AcquireOptions options = kReader;
  options.diagnostics = &why;
  EXPECT_FALSE(manager.lock("a")->acquire(options, {}, ec));
  EXPECT_EQ(ec, errc::invalid_argument) << ec.message();
  EXPECT_NE(why.server_text.find("exclusive locks only"), std::string::npos) << why.server_text;
  auto held = manager.lock("a")->acquire({.wait = 30s});
  EXPECT_EQ(held.downgrade(), errc::not_supported);
  EXPECT_EQ(held.mode(), Mode::exclusive);
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_P(SharedContract, ReadersHoldItTogetherAndAWriterIsAlone) {
  auto manager = open();
  auto reader = manager.lock("a")->acquire(kReader);
  EXPECT_EQ(reader.mode(), Mode::shared);
  const auto first = peer("a", Mode::shared);
  const auto second = peer("a", Mode::shared);
  ASSERT_TRUE(first->wait_held(patience()));
  ASSERT_TRUE(second->wait_held(patience()));
  EXPECT_TRUE(manager.lock("a")->try_acquire(kReaderAtOnce)) << "beside itself, too";
  EXPECT_FALSE(manager.lock("a")->try_acquire());
  first->release();
  EXPECT_FALSE(manager.lock("a")->try_acquire());
  EXPECT_FALSE(reader.release());
  EXPECT_FALSE(manager.lock("a")->try_acquire()) << "the last reader counts as the first did";
  second->release();
  auto writer = manager.lock("a")->acquire({.wait = 30s});
  EXPECT_EQ(writer.mode(), Mode::exclusive);
  EXPECT_FALSE(manager.lock("a")->try_acquire(kReaderAtOnce));
  EXPECT_FALSE(writer.release());
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedContract, StatusNamesAllReadersAndWhoWaits) {
  auto manager = open();
  auto one = manager.lock("a")->acquire(kReader);
  const auto other = peer("a", Mode::shared);
  const auto token = other->wait_held(patience());
  ASSERT_TRUE(token);
  const auto writer = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  const auto late = peer("a", Mode::shared);
  ASSERT_TRUE(waiters_become("a", 2));
  const auto status = observer().status("a");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.mode, Mode::shared);
  ASSERT_EQ(status.readers.size(), 2U);
  EXPECT_EQ(status.readers[0].token, one.token());
  EXPECT_EQ(status.readers[0].owner.pid, ::getpid());
  EXPECT_EQ(status.readers[1].token, token);
  EXPECT_NE(status.readers[0].owner.id, status.readers[1].owner.id);
  EXPECT_EQ(status.readers[1].owner.pid != ::getpid(), harness().has_processes());
  EXPECT_EQ(status.token, one.token());
  ASSERT_TRUE(status.owner);
  EXPECT_EQ(status.owner->id, status.readers[0].owner.id);
  for (const auto& reader : status.readers) {
    EXPECT_LT(reader.held_for.value_or(0ms), 10min);
    EXPECT_EQ(reader.remaining.has_value(), capabilities().lease_scope != LeaseScope::none);
  }
  if (capabilities().can_list) {
    const auto all = observer().list();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].readers.size(), 2U);
  }
  EXPECT_FALSE(one.release());
  other->release();
  ASSERT_TRUE(writer->wait_held(patience()));
  const auto written = observer().status("a");
  EXPECT_EQ(written.mode, Mode::exclusive);
  EXPECT_TRUE(written.readers.empty());
}

TEST_P(SharedContract, OneReaderIsBrokenByItsTokenAndTheOthersStay) {
  if (!capabilities().can_evict) GTEST_SKIP() << "nothing can be broken there";
  auto manager = open();
  auto one = manager.lock("a")->acquire(kReader);
  auto two = manager.lock("a")->acquire(kReader);
  auto three = manager.lock("a")->acquire(kReader);
  EXPECT_EQ(error_of([&] { observer().evict("a", *three.token() + 1000, {.at_once = true}); }),
            errc::not_holder);
  observer().evict("a", two.token().value(), {.at_once = true});
  EXPECT_TRUE(eventually(patience(), [&] { return two.state() == HandleState::lost; }));
  EXPECT_EQ(one.state(), HandleState::held);
  EXPECT_EQ(three.state(), HandleState::held);
  EXPECT_EQ(two.release(), errc::lock_lost);
  EXPECT_FALSE(manager.lock("a")->try_acquire());
}

TEST_P(SharedContract, ALostReaderIsToldAndBlocksNobody) {
  auto manager = open();
  auto reader = manager.lock("a")->acquire(kReader);
  harness().take_away(observer(), url(), "a");
  EXPECT_TRUE(eventually(patience(), [&] { return reader.state() == HandleState::lost; }));
  auto writer = manager.lock("a")->acquire({.wait = 60s});
  EXPECT_EQ(reader.release(), errc::lock_lost);
  EXPECT_EQ(writer.state(), HandleState::held) << "a release is of one acquisition";
}

// A reader's token refuses no other reader; a writer's does.
TEST_P(SharedContract, TokensOfReadersPassInAnyOrderUntilAWriterCame) {
  auto manager = open();
  auto one = manager.lock("a")->acquire(kReader);
  auto two = manager.lock("a")->acquire(kReader);
  if (!one.sequencer()) GTEST_SKIP() << "it has no tokens";
  EXPECT_NE(one.token(), two.token());
  const auto first = one.sequencer().value();
  const auto second = two.sequencer().value();
  EXPECT_EQ(first.mode(), Mode::shared);
  EXPECT_EQ(Sequencer::parse(first.to_string()), first);
  SequencerCheck check;
  EXPECT_EQ(check.admit(second), SequencerCheck::Verdict::admitted);
  EXPECT_EQ(check.admit(first), SequencerCheck::Verdict::admitted);
  EXPECT_EQ(observer().check(first).standing, Standing::current);
  EXPECT_EQ(observer().check(second).standing, Standing::current);
  EXPECT_FALSE(one.release());
  EXPECT_FALSE(two.release());
  auto writer = manager.lock("a")->acquire({.wait = 30s});
  EXPECT_GT(writer.token(), std::max(first.token(), second.token()));
  EXPECT_EQ(check.admit(writer.sequencer().value()), SequencerCheck::Verdict::admitted);
  EXPECT_EQ(check.admit(second), SequencerCheck::Verdict::stale);
  EXPECT_EQ(observer().check(second).standing, Standing::superseded);
}

TEST_P(SharedContract, G15_AWriterStepsDownWithoutAGapAndKeepsItFor4Leases) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  const auto token = held.token();
  const auto reader = peer("a", Mode::shared);
  ASSERT_TRUE(waiters_become("a", 1));
  const auto writer = peer("a");
  ASSERT_TRUE(waiters_become("a", 2));
  EXPECT_FALSE(held.downgrade());
  EXPECT_EQ(held.mode(), Mode::shared);
  EXPECT_EQ(held.token(), token);
  EXPECT_FALSE(held.downgrade()) << "nothing is left to do";
  ASSERT_TRUE(reader->wait_held(patience()));
  EXPECT_FALSE(writer->is_held());
  if (token) {
    EXPECT_EQ(observer().check(held.sequencer().value()).standing, Standing::current);
    EXPECT_LT(*token, reader->wait_held(patience()).value());
  }
  // Readers are renewed as everybody is.
  const auto until = testkit::Clock::now() + 4 * capabilities().lease;
  EXPECT_FALSE(
      eventually(until, [&] { return held.state() == HandleState::lost || writer->is_held(); }));
  EXPECT_EQ(observer().status("a").readers.size(), 2U);
  EXPECT_FALSE(manager.lock("a")->try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(writer->is_held());
  reader->release();
  const auto next = writer->wait_held(patience());
  ASSERT_TRUE(next);
  if (token) {
    EXPECT_GT(*next, *token);
  }
  writer->release();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedContract, AWriterThatSteppedDownIsBrokenAndReleasedAsAnyReader) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  EXPECT_FALSE(held.downgrade());
  EXPECT_TRUE(manager.lock("a")->try_acquire(kReaderAtOnce));
  harness().take_away(observer(), url(), "a");
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.release(), errc::lock_lost);
  auto next = manager.lock("a")->acquire({.wait = 60s});
  EXPECT_FALSE(next.release());
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedContract, RequireSharedIsMet) {
  auto config = Config::from_url(url());
  config.stores.at(0).set({"require", "shared", {}});
  auto manager = LockManager::from_config(std::move(config), open_options());
  EXPECT_TRUE(manager.lock("a")->try_acquire(kReader));
}

}  // namespace
}  // namespace dlock::contract

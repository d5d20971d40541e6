// SPDX-License-Identifier: Apache-2.0
//
// A lock that moves, through the public API alone: one route of a configuration is all that a
// program has of it.
#include <gtest/gtest.h>

#include <future>

#include "backends/memory/store.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"
#include "migration/record.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using core::migration::MoveState;
using core::migration::Record;

/// Two stores of the process, and the hands of a coordinator.
class MigratingLock : public testing::Test {
 protected:
  MigratingLock() {
    static int number = 0;
    const auto tail = std::to_string(++number);
    s_ = memory::SharedStore::get("ml-s" + tail);
    t_ = memory::SharedStore::get("ml-t" + tail);
    stores_ = "stores: { s: \"memory://ml-s" + tail + "\", t: \"memory://ml-t" + tail + "\" }\n";
    t_->set_note("plan/p", "",
                 "dlock-plan4\nname=p\nid=0123456789abcdef\nfrom=s\nto=t\nmax_lease_ms=0\n"
                 "lossy_target=0\nleased_target=0\nfloor=0\ngate=\nlease_ms=0\npatterns=1\na");
  }

  LockManager open(const std::string& route) const {
    OpenOptions options;
    options.backends = {&memory::backend()};
    options.log = [](LogLevel, std::string_view) {};
    return LockManager::from_config(
        Config::from_yaml(stores_ + "locks:\n  - " + route + "\n", "test.yaml"), options);
  }
  LockManager open() const {
    return open("{ match: \"**\", migrate: { from: s, to: t, plan: p, poll: 50ms } }");
  }

  void move() {
    Owner owner;
    owner.id = "coordinator";
    const auto grant = s_->claim("a", owner, true, 0, {}, [] {});
    ASSERT_TRUE(grant.granted);
    Record record;
    record.gen = {grant.token, 1};
    record.target = "t";
    record.floor = grant.token;
    record.plan = "p";
    record.plan_id = "0123456789abcdef";
    ASSERT_TRUE(s_->seal("a", "coordinator", to_text(record)).done);
  }
  void move_back(std::uint64_t above) {
    ASSERT_TRUE(s_->set_record("a", s_->record("a"), "", above).done);
  }

  std::shared_ptr<memory::SharedStore> s_;
  std::shared_ptr<memory::SharedStore> t_;
  std::string stores_;
};

TEST_F(MigratingLock, NothingInTheCallersCodeChanges) {
  auto locks = open();
  const auto lock = locks.lock("a");
  auto held = lock->acquire();
  EXPECT_EQ(held.store(), "s");
  const auto first = *held.token();
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_FALSE(held.release());
  move();
  held = lock->acquire({.wait = 5s});
  EXPECT_EQ(held.store(), "t");
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_GT(*held.token(), first + 1);
  EXPECT_EQ(held.sequencer()->store(), "t");
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_FALSE(lock->try_acquire({.wait = 20ms}));
  const auto second = *held.token();
  EXPECT_FALSE(held.release());
  move_back(second);
  const auto again = lock->try_acquire();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->store(), "s");
  EXPECT_GT(*again->token(), second);
}

TEST_F(MigratingLock, StatusCheckAndBreakFollowTheLock) {
  auto locks = open();
  auto held = locks.lock("a")->acquire();
  EXPECT_EQ(locks.status("a").token, held.token());
  const auto old = *held.sequencer();
  EXPECT_EQ(locks.check(old).standing, Standing::current);
  held.release();
  move();
  held = locks.lock("a")->acquire();
  EXPECT_EQ(locks.status("a").token, held.token());
  EXPECT_EQ(locks.check(*held.sequencer()).standing, Standing::current);
  EXPECT_EQ(locks.check(old).standing, Standing::superseded);
  locks.evict("a", *held.token(), {.at_once = true});
  EXPECT_EQ(t_->holder_token("a"), std::nullopt);
}

TEST_F(MigratingLock, AWaitInTheTargetEndsByDeadlineStopAndClose) {
  move();
  auto locks = open();
  const auto lock = locks.lock("a");
  auto held = lock->acquire();
  ASSERT_EQ(held.store(), "t");
  error_code ec;
  EXPECT_FALSE(lock->acquire({.wait = 150ms}, {}, ec));
  EXPECT_EQ(ec, errc::timed_out);
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] {
    error_code why;
    (void)lock->acquire({}, stop.get_token(), why);
    return why;
  });
  while (t_->inspect("a", {}).waiting.empty()) std::this_thread::yield();
  stop.request_stop();
  EXPECT_EQ(stopped.get(), errc::cancelled);
  auto closed = std::async(std::launch::async, [&] {
    error_code why;
    (void)lock->acquire({}, {}, why);
    return why;
  });
  while (t_->inspect("a", {}).waiting.empty()) std::this_thread::yield();
  locks.close();
  EXPECT_EQ(closed.get(), errc::closed);
  EXPECT_TRUE(t_->inspect("a", {}).waiting.empty());
  EXPECT_FALSE(t_->inspect("a", {}).held);
  EXPECT_TRUE(s_->inspect("a", {}).waiting.empty());
}

TEST_F(MigratingLock, AGrantOfItsRouteIsNeitherAdoptedNorExported) {
  auto exporter = open("{ match: \"**\", store: s }");
  const auto text = exporter.lock("a")->acquire().export_grant();
  auto locks = open();
  Diagnostics why;
  error_code ec;
  EXPECT_FALSE(locks.adopt(text, {.wait = 5s, .diagnostics = &why}, ec));
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_NE(why.server_text.find("has `migrate`"), std::string::npos) << why.server_text;
  EXPECT_TRUE(exporter.adopt(text, {.wait = 5s})) << "the refusal has left the grant as it was";

  auto held = locks.lock("b")->acquire();
  EXPECT_TRUE(held.export_grant({.diagnostics = &why}, ec).empty());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_NE(why.server_text.find("has `migrate`"), std::string::npos) << why.server_text;
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_F(MigratingLock, ManyProgramsFollowALockToAndFro) {
  auto one = open();
  auto other = open();
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<std::uint64_t> last = 0;
  std::atomic<bool> risen = true;
  std::atomic<bool> over = false;
  std::atomic<int> grants = 0;
  const auto work = [&](LockManager& locks) {
    const auto lock = locks.lock("a");
    while (!over) {
      auto held = lock->acquire();
      most = std::max(most.load(), ++inside);
      if (*held.token() <= last.exchange(*held.token())) risen = false;
      ++grants;
      --inside;
      held.release();
    }
  };
  std::vector<std::future<void>> workers;
  for (auto* const locks : {&one, &one, &other, &other}) {
    workers.push_back(std::async(std::launch::async, work, std::ref(*locks)));
  }
  auto operators = open("{ match: \"**\", store: s }");
  for (int i = 0; i < 6; ++i) {
    const auto before = grants.load();
    while (grants < before + 20) std::this_thread::yield();
    if (!s_->record("a").empty()) {
      // Drain the target as a coordinator does: CLOSING, then its lock.
      auto record = *core::migration::parse_record(s_->record("a"));
      record = next_record(record, MoveState::closing, 0);
      ASSERT_TRUE(s_->set_record("a", s_->record("a"), to_text(record), 0).done);
      Owner owner;
      owner.id = "drain" + std::to_string(i);
      auto grant = t_->claim("a", owner, true, record.floor, {}, [] {});
      while (!grant.granted) {
        std::this_thread::yield();
        grant = t_->claim("a", owner, true, record.floor, {}, [] {});
      }
      move_back(grant.token);
      t_->release("a", owner.id);
      continue;
    }
    auto held = operators.lock("a")->acquire();
    Record record;
    record.gen = {*held.token(), 1};
    record.target = "t";
    record.floor = *held.token();
    record.plan = "p";
    record.plan_id = "0123456789abcdef";
    const auto owner = s_->inspect("a", {}).owner->id;
    ASSERT_TRUE(s_->seal("a", owner, to_text(record)).done);
  }
  over = true;
  for (auto& worker : workers) worker.get();
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(risen);
}

}  // namespace
}  // namespace dlock

// SPDX-License-Identifier: Apache-2.0
//
// Mode dual through the public API alone: one route of a configuration is all that a program has of
// it.
#include <gtest/gtest.h>

#include <thread>

#include "backends/memory/store.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"
#include "migration/dual/window.hpp"
#include "migration/plan.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using core::migration::Window;

class DualManager : public testing::Test {
 protected:
  DualManager() {
    static int number = 0;
    const auto tail = std::to_string(++number);
    s_ = memory::SharedStore::get("dm-s" + tail);
    t_ = memory::SharedStore::get("dm-t" + tail);
    w_ = memory::SharedStore::get("dm-w" + tail);
    stores_ = "stores: { s: \"memory://dm-s" + tail + "\", t: \"memory://dm-t" + tail +
              "\", w: \"memory://dm-w" + tail + "\" }\n";
    core::migration::Plan plan;
    plan.name = "p";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.mode = MigrateMode::dual;
    plan.window = "w";
    plan.patterns = {"**"};
    t_->set_note("plan/p", "", to_text(plan));
    Window window;
    window.plan = "p";
    window.plan_id = plan.id;
    window.from = "s";
    window.to = "t";
    window.born = "0000000000000001";
    window.hi = 1;
    window.ver = 1;
    window.lease = 2s;
    admit(window);
  }

  void admit(const Window& window) {
    w_->set_note("window/p", w_->note("window/p"), to_text(window));
  }
  Window window() const { return core::migration::parse_window(w_->note("window/p")).value(); }

  LockManager open(int phase) const {
    OpenOptions options;
    options.backends = {&memory::backend()};
    options.log = [](LogLevel, std::string_view) {};
    const auto route =
        "locks:\n  - { match: \"**\", migrate: { from: s, to: t, plan: p, mode: dual, " +
        std::string("window: w, phase: ") + std::to_string(phase) + " } }\n";
    return LockManager::from_config(Config::from_yaml(stores_ + route, "test.yaml"), options);
  }

  std::shared_ptr<memory::SharedStore> s_;
  std::shared_ptr<memory::SharedStore> t_;
  std::shared_ptr<memory::SharedStore> w_;
  std::string stores_;
};

TEST_F(DualManager, TwoPhasesExcludeEachOtherAndNothingInTheCallersCodeChanges) {
  auto zero = open(0);
  auto one = open(1);
  auto held = zero.lock("a")->acquire();
  EXPECT_EQ(held.store(), "s");
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_TRUE(held.remaining());
  EXPECT_FALSE(one.lock("a")->try_acquire());
  const auto first = *held.token();
  EXPECT_FALSE(held.release());
  held = one.lock("a")->acquire({.wait = 5s});
  EXPECT_EQ(held.store(), "t");
  EXPECT_GT(*held.token(), first);
  EXPECT_FALSE(zero.lock("a")->try_acquire());
  EXPECT_EQ(one.status("a").token, held.token());
  EXPECT_EQ(one.check(*held.sequencer()).standing, Standing::current);
  const auto second = *held.token();
  EXPECT_FALSE(held.release());
  held = zero.lock("a")->acquire({.wait = 5s});
  EXPECT_GT(*held.token(), second);
  EXPECT_EQ(window().programs.size(), 2U);
}

TEST_F(DualManager, AClosedManagerIsNoLongerRegistered) {
  {
    auto one = open(1);
    auto held = one.lock("a")->acquire();
    EXPECT_EQ(window().programs.size(), 1U);
    one.close();
    EXPECT_EQ(held.state(), HandleState::lost);
  }
  EXPECT_TRUE(window().programs.empty());
  EXPECT_FALSE(s_->holder_token("a"));
  EXPECT_FALSE(t_->holder_token("a"));
}

TEST_F(DualManager, ErrorsSayWhatToDo) {
  auto two = open(2);
  try {
    (void)two.lock("a")->acquire();
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::window_closed);
    EXPECT_NE(std::string(error.what()).find("write `phase: 1`"), std::string::npos)
        << error.what();
  }
  w_->set_note("window/p", w_->note("window/p"), "");
  error_code ec;
  EXPECT_FALSE(open(0).lock("a")->acquire({}, {}, ec));
  EXPECT_EQ(ec, errc::not_registered);
}

TEST_F(DualManager, ManyThreadsShareOneRegistration) {
  auto one = open(1);
  std::vector<std::thread> threads;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) {
        auto held = one.lock("a")->acquire();
        most = std::max(most.load(), ++inside);
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(window().programs.size(), 1U);
}

}  // namespace
}  // namespace dlock

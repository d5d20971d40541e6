// SPDX-License-Identifier: Apache-2.0
//
// What a hold tells, in which order, and that its release ends it. With real threads that tell, and
// no store: whoever loses it here is the test.
#include "core/store/hold.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "core/store/host.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using Told = std::vector<std::pair<HandleState, LossReason>>;

/// A manager that tells, and takes everything back at once.
class TellingHost final : public Host {
 public:
  TellingHost() { crew_->start(); }
  ~TellingHost() override { finish(); }
  Env& env() noexcept override { return env_; }
  bool post(Job) override { return true; }
  void post_callback(std::shared_ptr<Errand> errand) noexcept override {
    crew_->post(std::move(errand));
  }
  asio::any_io_executor callback_executor() override { return env_.executor(); }
  void release(const std::shared_ptr<Hold>&, Releaser::Done done) noexcept override {
    if (done) done({});
  }
  void on_loss(const Loss& loss) override {
    const std::lock_guard lock(mutex_);
    losses_.push_back(loss.reason);
  }
  void log(LogLevel, std::string_view) const noexcept override {}

  /// The reasons of the losses that were reported to on_loss().
  std::vector<LossReason> losses() const {
    const std::lock_guard lock(mutex_);
    return losses_;
  }
  /// Returns when all has been told.
  void finish() { crew_->finish(std::chrono::steady_clock::now() + 30s); }
  tests::VirtualEnv& loop() { return env_; }

 private:
  tests::VirtualEnv env_;
  mutable std::mutex mutex_;
  std::vector<LossReason> losses_;
  const std::shared_ptr<Crew> crew_ =
      std::make_shared<Crew>(Crew::Limits{.least = 1, .most = 8, .patience = 1ms});
};

std::shared_ptr<Hold> make_hold(const std::shared_ptr<TellingHost>& host) {
  return std::make_shared<Hold>(host, std::weak_ptr<Store>(), Hold::Identity{"a", "s", 1}, nullptr,
                                kNever);
}

TEST(Hold, P02_NoCallbackRunsAfterTheReleaseInTenThousandRaces) {
  constexpr std::size_t kBatch = 100;
  constexpr int kBatches = 100;
  const auto host = std::make_shared<TellingHost>();
  std::atomic<int> told = 0;
  std::atomic<int> late = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<std::shared_ptr<Hold>> holds;
    std::vector<LockHandle> handles;
    std::vector<std::unique_ptr<std::atomic<bool>>> alive;
    for (std::size_t i = 0; i < kBatch; ++i) {
      holds.push_back(make_hold(host));
      handles.emplace_back(holds.back());
      alive.push_back(std::make_unique<std::atomic<bool>>(true));
      handles.back().on_state([&told, &late, here = alive.back().get()](HandleState, LossReason) {
        ++told;
        if (!*here) ++late;
        std::this_thread::yield();
        if (!*here) ++late;
      });
    }
    std::thread loses([&] {
      for (const auto& hold : holds) hold->become(HandleState::lost, LossReason::removed);
    });
    for (std::size_t i = 0; i < kBatch; ++i) {
      auto& handle = handles[i];
      if (i % 3 == 0) handle.release();
      if (i % 3 == 1) handle = LockHandle();
      if (i % 3 == 2) {
        std::promise<void> over;
        handle.start_release([&](error_code) { over.set_value(); });
        over.get_future().wait();
      }
      *alive[i] = false;
    }
    loses.join();
  }
  host->finish();
  EXPECT_EQ(late, 0);
  RecordProperty("told", told);
}

TEST(Hold, ChangesAreToldInOrderToEachWhoAsked) {
  const auto host = std::make_shared<TellingHost>();
  const auto hold = make_hold(host);
  LockHandle handle(hold);
  Told first;
  Told second;
  std::vector<std::size_t> order;  // which change each telling was of
  std::promise<void> go;
  handle.on_state([&, wait = go.get_future().share()](HandleState state, LossReason why) {
    if (first.empty()) wait.wait();  // what follows has to queue
    first.emplace_back(state, why);
    order.push_back(first.size());
  });
  hold->become(HandleState::suspect);
  hold->become(HandleState::held);
  hold->become(HandleState::suspect);
  handle.on_state([&](HandleState state, LossReason why) {
    second.emplace_back(state, why);
    order.push_back(2 + second.size());
  });
  hold->become(HandleState::held);
  hold->become(HandleState::lost, LossReason::taken);
  hold->become(HandleState::lost, LossReason::expired);
  go.set_value();
  host->finish();
  const std::pair suspect(HandleState::suspect, LossReason::none);
  const std::pair held(HandleState::held, LossReason::none);
  const std::pair lost(HandleState::lost, LossReason::taken);
  EXPECT_EQ(first, (Told{suspect, held, suspect, held, lost}));
  EXPECT_EQ(second, (Told{suspect, held, lost}));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()))
      << "a change is told to all, then the next";
  Told third;
  handle.on_state([&](HandleState state, LossReason why) { third.emplace_back(state, why); });
  host->finish();
  EXPECT_EQ(third, Told{lost});
}

TEST(Hold, AStopDoesNotWaitForChangesThatWereBeforeTheLoss) {
  const auto host = std::make_shared<TellingHost>();
  const auto hold = make_hold(host);
  LockHandle handle(hold);
  std::atomic<int> told = 0;
  std::atomic<int> stopped_after = -1;
  const std::stop_callback on_stop(handle.stop_token(), [&] { stopped_after = told.load(); });
  std::promise<void> go;
  handle.on_state([&, wait = go.get_future().share()](HandleState, LossReason) {
    wait.wait();
    ++told;
  });
  hold->become(HandleState::suspect);
  hold->become(HandleState::held);
  hold->become(HandleState::suspect);
  hold->become(HandleState::lost, LossReason::expired);
  go.set_value();
  host->finish();
  EXPECT_LE(stopped_after, 1);  // the one that was running
  EXPECT_EQ(told, 4);
}

TEST(Hold, WhatACallbackHasCapturedEndsWithTheRelease) {
  const auto host = std::make_shared<TellingHost>();
  const auto captured = std::make_shared<int>();
  for (const bool lost : {false, true}) {
    const auto hold = make_hold(host);
    LockHandle handle(hold);
    handle.on_state([captured](HandleState, LossReason) {});
    if (lost) hold->become(HandleState::lost, LossReason::removed);
    handle.release();
    EXPECT_EQ(captured.use_count(), 1);
  }
}

TEST(Hold, WhatIsFinalStays) {
  const auto host = std::make_shared<TellingHost>();
  const auto lost = make_hold(host);
  lost->become(HandleState::lost, LossReason::taken);
  lost->become(HandleState::held);
  lost->become(HandleState::suspect);
  EXPECT_EQ(lost->state(), HandleState::lost) << "an answer that comes late does not bring it back";
  EXPECT_FALSE(lost->give_back());
  EXPECT_EQ(lost->state(), HandleState::lost);
  EXPECT_EQ(lost->reason(), LossReason::taken);
  const auto released = make_hold(host);
  EXPECT_TRUE(released->give_back());
  released->become(HandleState::lost, LossReason::expired);
  EXPECT_EQ(released->state(), HandleState::released);
  EXPECT_FALSE(released->stop_token().stop_requested());
}

TEST(Hold, SaysWhenItsEndIsToldAndWhenItsHandleIsGone) {
  const auto host = std::make_shared<TellingHost>();
  const auto hold = make_hold(host);
  LockHandle handle(hold);
  int told = 0;
  int left = 0;
  std::promise<void> go;
  handle.on_state([wait = go.get_future().share()](HandleState, LossReason) { wait.wait(); });
  hold->become(HandleState::lost, LossReason::closed);
  hold->when_told([&] { ++told; });
  hold->when_left([&] { ++left; });
  host->loop().run_for(1s);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(left, 0);
  go.set_value();
  host->finish();
  host->loop().run_for(1s);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(left, 0);
  handle = LockHandle();
  host->loop().run_for(1s);
  EXPECT_EQ(left, 1);
  hold->when_told([&] { ++told; });
  hold->when_left([&] { ++left; });
  host->loop().run_for(1s);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(left, 2);
}

TEST(Hold, ALossBeforeTheHandOutIsReportedAtTheHandOut) {
  const auto host = std::make_shared<TellingHost>();
  const auto unused = make_hold(host);
  unused->become(HandleState::lost, LossReason::expired);
  const auto used = make_hold(host);
  used->become(HandleState::lost, LossReason::removed);
  used->hand_out();
  host->finish();
  EXPECT_EQ(host->losses(), std::vector{LossReason::removed});
}

TEST(Hold, ALossAfterTheHandOutIsReportedOnce) {
  const auto host = std::make_shared<TellingHost>();
  const auto hold = make_hold(host);
  hold->hand_out();
  hold->become(HandleState::lost, LossReason::broken);
  hold->become(HandleState::lost, LossReason::expired);
  host->finish();
  EXPECT_EQ(host->losses(), std::vector{LossReason::broken});
}

}  // namespace
}  // namespace dlock::core

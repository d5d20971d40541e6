// SPDX-License-Identifier: Apache-2.0
#include "core/loop/crew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <vector>

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void post(Crew& crew, std::function<void()> call) { crew.post(make_errand(std::move(call))); }

/// What blocks until it is let go.
class Gate {
 public:
  void wait() { open_.wait(); }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> open_ = promise_.get_future().share();
};

bool comes(std::future<void> event) { return event.wait_for(10s) == std::future_status::ready; }

TEST(Crew, OneThreadDoesWhatOneCanDo) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.least = 1, .most = 64, .patience = 1s});
  crew->start();
  std::vector<int> order;
  std::set<std::thread::id> threads;
  std::atomic<int> at_once = 0, most_at_once = 0;
  for (int i = 0; i < 1000; ++i) {
    post(*crew, [&, i] {
      most_at_once = std::max(most_at_once.load(), ++at_once);
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
      --at_once;
    });
  }
  crew->finish(Clock::now() + 10s);
  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(most_at_once, 1);
  // It, and the one that watches over the queue meanwhile: they may change places.
  EXPECT_LE(threads.size(), 2U);
}

TEST(Crew, AnErrandDoesNotWaitForThoseThatAreStuck) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.least = 1, .most = 8, .patience = 1ms});
  crew->start();
  Gate gate;
  for (int i = 0; i < 7; ++i) post(*crew, [&] { gate.wait(); });
  std::promise<void> ran;
  post(*crew, [&] { ran.set_value(); });
  EXPECT_TRUE(comes(ran.get_future()));
  gate.open();
  crew->finish(Clock::now() + 10s);
}

TEST(Crew, MoreThanTheMostWaitForOneThatComesBack) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.most = 2});
  Gate gate;
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 6; ++i) {
    post(*crew, [&] {
      most = std::max<int>(most, ++running);
      gate.wait();
      --running;
    });
  }
  while (running < 2) std::this_thread::yield();
  gate.open();
  crew->finish(Clock::now() + 10s);
  EXPECT_EQ(running, 0);
  EXPECT_EQ(most, 2);
}

TEST(Crew, ThreadsWithoutWorkEndAndAreMadeAgain) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.most = 4, .rest = 0ms});
  for (int round = 0; round < 100; ++round) {
    std::promise<void> ran;
    post(*crew, [&] { ran.set_value(); });
    ASSERT_TRUE(comes(ran.get_future()));
  }
  crew->finish(Clock::now() + 10s);
}

TEST(Crew, FinishLeavesTheStuckToThemselvesAndDropsTheRest) {
  auto gate = std::make_shared<Gate>();
  auto begun = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  auto came = ended->get_future();
  const auto dropped = std::make_shared<std::atomic<int>>(0);
  auto crew = std::make_shared<Crew>(Crew::Limits{});
  post(*crew, [=] {
    begun->set_value();
    gate->wait();
    ended->set_value();
  });
  ASSERT_TRUE(comes(begun->get_future()));
  for (int i = 0; i < 100'000; ++i) post(*crew, [=] { ++*dropped; });
  const auto before = Clock::now();
  crew->finish(before + 50ms);
  EXPECT_LT(Clock::now() - before, 5s);
  crew.reset();
  gate->open();
  EXPECT_TRUE(comes(std::move(came)));
  EXPECT_EQ(*dropped, 0);
}

TEST(Crew, FinishFromItsOwnThreadWaitsForNothingAndDropsNothing) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{});
  std::promise<void> posted;
  std::promise<void> last;
  post(*crew, [&] {
    posted.get_future().wait();
    crew->finish(Clock::now() + 1h);
  });
  post(*crew, [&] { last.set_value(); });
  posted.set_value();
  EXPECT_TRUE(comes(last.get_future()));
  crew->finish(Clock::now() + 10s);
}

TEST(Crew, WorksAgainAfterFinish) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.least = 1});
  crew->start();
  crew->finish(Clock::now() + 10s);
  std::promise<void> ran;
  post(*crew, [&] { ran.set_value(); });
  EXPECT_TRUE(comes(ran.get_future()));
  crew->finish(Clock::now() + 10s);
}

TEST(Crew, PostedFromManyThreadsAllRunOnce) {
  const auto crew = std::make_shared<Crew>(Crew::Limits{.least = 1, .most = 4, .rest = 0ms});
  crew->start();
  std::atomic<int> ran = 0;
  std::vector<std::thread> posters;
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) post(*crew, [&] { ++ran; });
    });
  }
  for (auto& poster : posters) poster.join();
  crew->finish(Clock::now() + 20s);
  EXPECT_EQ(ran, 20'000);
}

}  // namespace
}  // namespace dlock::core

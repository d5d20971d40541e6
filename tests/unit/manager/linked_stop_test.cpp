// SPDX-License-Identifier: Apache-2.0
//
// LinkedStop: requested by either token, and by nothing after its end.
#include "dlock/linked_stop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"
#include "dlock/synchronized.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

TEST(LinkedStop, IsRequestedByEither) {
  for (const bool first : {true, false}) {
    std::stop_source one;
    std::stop_source other;
    const LinkedStop stop(one.get_token(), other.get_token());
    const auto token = stop.token();
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
    (first ? one : other).request_stop();
    EXPECT_TRUE(token.stop_requested());
    (first ? other : one).request_stop();
    EXPECT_TRUE(token.stop_requested());
  }
}

TEST(LinkedStop, IsRequestedAtOnceByWhatWasRequestedAlready) {
  std::stop_source requested;
  requested.request_stop();
  EXPECT_TRUE(LinkedStop(requested.get_token(), {}).token().stop_requested());
  EXPECT_TRUE(LinkedStop({}, requested.get_token()).token().stop_requested());
  EXPECT_FALSE(LinkedStop({}, {}).token().stop_requested());
}

TEST(LinkedStop, ItsTokenStaysAsItIsWhenTheLinkHasEnded) {
  std::stop_source source;
  std::optional<LinkedStop> stop(std::in_place, source.get_token(), std::stop_token());
  const auto unrequested = stop->token();
  stop.reset();
  source.request_stop();
  EXPECT_FALSE(unrequested.stop_requested());
  stop.emplace(source.get_token(), std::stop_token());
  const auto requested = stop->token();
  stop.reset();
  EXPECT_TRUE(requested.stop_requested());
}

TEST(LinkedStop, MayEndInsideOfACallbackOfItsToken) {
  std::stop_source source;
  std::optional<LinkedStop> stop(std::in_place, source.get_token(), source.get_token());
  int called = 0;
  const std::stop_callback first(stop->token(), [&] {
    ++called;
    stop.reset();
  });
  const std::stop_callback second(stop->token(), [&] { ++called; });
  source.request_stop();
  EXPECT_EQ(called, 2);
}

TEST(LinkedStop, ItsEndWaitsForACallbackOnAnotherThread) {
  std::stop_source source;
  std::optional<LinkedStop> stop(std::in_place, std::stop_token(), source.get_token());
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<bool> returned = false;
  const std::stop_callback callback(stop->token(), [&] {
    begun.set_value();
    go_on.get_future().wait();
    returned = true;
  });
  std::jthread requester([&] { source.request_stop(); });
  begun.get_future().wait();
  auto end = std::async(std::launch::async, [&] {
    stop.reset();
    return returned.load();
  });
  EXPECT_EQ(end.wait_for(20ms), std::future_status::timeout);
  go_on.set_value();
  EXPECT_TRUE(end.get());
}

// As the manual shows it.
TEST(LinkedStop, EndsWorkByAShutdownAndByALoss) {
  for (const bool is_shutdown : {true, false}) {
    auto locks = LockManager::open("memory://linked-stop", {.backends = {&memory::backend()}});
    std::stop_source shutdown;
    LockHandle held = locks.lock("a")->acquire({}, shutdown.get_token());
    const LinkedStop stop(shutdown.get_token(), held.stop_token());
    if (is_shutdown) {
      shutdown.request_stop();
    } else {
      locks.evict("a", held.token().value(), {.at_once = true});
    }
    EXPECT_TRUE(eventually(patience(), [&] { return stop.token().stop_requested(); }));
  }
}

TEST(LinkedStop, IsUsedInASynchronizedSection) {
  auto locks = LockManager::open("memory://linked-section", {.backends = {&memory::backend()}});
  std::stop_source shutdown;
  const bool stopped = synchronized(locks, "a", [&](std::stop_token lost) {
    const LinkedStop stop(shutdown.get_token(), lost);
    shutdown.request_stop();
    return stop.token().stop_requested();
  });
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace dlock::tests

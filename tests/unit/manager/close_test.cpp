// SPDX-License-Identifier: Apache-2.0
//
// close() with calls under way, on a store that never answers them.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::atomic<int> asked = 0;
std::atomic<bool> close_ends = true;

/// What never comes, and so keeps its store for ever: reachable, or it would count as a leak.
std::shared_ptr<Signal> nothing(Env& env) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<Signal>>();
  const std::lock_guard lock(mutex);
  kept->push_back(std::make_shared<Signal>(env));
  return kept->back();
}

asio::awaitable<void> never(Env& env) {
  const auto signal = nothing(env);
  co_await signal->wait_until(kNever);
}

/// The in-process store, but for calls that never end.
class Mute final : public Backend {
 public:
  Mute(std::unique_ptr<Backend> real, Env& env) : real_(std::move(real)), env_(env) {}

  asio::awaitable<Failure> connect(TimePoint deadline) override { return real_->connect(deadline); }
  const Capabilities& capabilities() const noexcept override { return real_->capabilities(); }
  ClaimPtr make_claim(ClaimRequest request) override {
    return real_->make_claim(std::move(request));
  }
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    return real_->claim(std::move(claim), deadline);
  }
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    return real_->wait(std::move(claim), deadline);
  }
  void interrupt(Claim& claim) noexcept override { real_->interrupt(claim); }
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override {
    return real_->extend(std::move(claims), deadline);
  }
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override {
    return real_->release(std::move(claim), search, deadline);
  }
  asio::awaitable<Result<LockStatus>> inspect(std::string, TimePoint) override {
    ++asked;
    co_await never(env_);
    co_return Result<LockStatus>{};
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string, TimePoint) override {
    ++asked;
    co_await never(env_);
    co_return Result<std::vector<LockStatus>>{};
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest, TimePoint) override {
    ++asked;
    co_await never(env_);
    co_return EvictAnswer();
  }
  asio::awaitable<void> close(TimePoint deadline) override {
    if (!close_ends) co_await never(env_);
    co_await real_->close(deadline);
  }

 private:
  const std::unique_ptr<Backend> real_;
  Env& env_;
};

const BackendDescriptor& mute() {
  static const BackendDescriptor descriptor = [] {
    auto made = memory::backend();
    made.create = [](const StoreOptions& options, Env& env, EventSink& sink) {
      std::unique_ptr<Backend> wrapped =
          std::make_unique<Mute>(memory::backend().create(options, env, sink), env);
      return wrapped;
    };
    return made;
  }();
  return descriptor;
}

/// What three calls under way were answered when the manager closed, and how long that took.
void expect_closed(std::chrono::seconds bound) {
  auto locks = LockManager::open("memory://close?release_timeout=200ms", {.backends = {&mute()}});
  locks.connect();
  const auto before_asked = asked.load();
  const std::vector<std::function<void()>> calls{[&] { locks.status("a"); }, [&] { locks.list(); },
                                                 [&] { locks.evict("a", 1, {.at_once = true}); }};
  std::vector<std::future<error_code>> answers;
  for (const auto& call : calls) {
    answers.push_back(std::async(std::launch::async, [&call] {
      try {
        call();
      } catch (const LockError& error) {
        return error.code();
      }
      return error_code();
    }));
  }
  while (asked < before_asked + 3) std::this_thread::yield();
  const auto before = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - before, bound);
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(10s), std::future_status::ready);
    EXPECT_EQ(answer.get(), errc::closed);
  }
  EXPECT_THROW(locks.status("a"), LockError);
}

TEST(Close, EndsCallsThatTheStoreNeverAnswers) { expect_closed(5s); }

TEST(Close, EndsThoughTheStoreDoesNot) {
  close_ends = false;
  expect_closed(20s);
  close_ends = true;
}

}  // namespace
}  // namespace dlock

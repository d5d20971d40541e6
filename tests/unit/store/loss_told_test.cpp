// SPDX-License-Identifier: Apache-2.0
//
// How late after its local deadline a loss is told, while all that is user code stands in the way:
// another handle's callback sleeps, a completion handler sleeps, the log is stuck, and 200 locks
// are lost at once, ten times over. In real time; the store grants leases that end at one moment,
// and never renews.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/manager/engine.hpp"
#include "dlock/async.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 200;
constexpr int kRounds = 10;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// Instrumented code is ten times slower, and two hundred handles are told by it.
constexpr Duration kBound = 250ms;
#else
constexpr Duration kBound = 10ms;
#endif

/// When all leases that are granted now end.
std::atomic<TimePoint::rep> leases_end = 0;

/// The in-process store with leases that cannot be renewed.
class Ending final : public Backend {
 public:
  explicit Ending(std::unique_ptr<Backend> real) : real_(std::move(real)) {}

  asio::awaitable<Failure> connect(TimePoint deadline) override {
    auto failure = co_await real_->connect(deadline);
    capabilities_ = real_->capabilities();
    capabilities_.lease_scope = LeaseScope::claim;
    capabilities_.lease = 1h;
    capabilities_.shortest_lease = 1ms;
    capabilities_.longest_lease = 2h;
    co_return failure;
  }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  ClaimPtr make_claim(ClaimRequest request) override {
    return real_->make_claim(std::move(request));
  }
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    auto answer = co_await real_->claim(std::move(claim), deadline);
    answer.validity = {TimePoint(Duration(leases_end.load())), kNever};
    co_return answer;
  }
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    return real_->wait(std::move(claim), deadline);
  }
  void interrupt(Claim& claim) noexcept override { real_->interrupt(claim); }
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint) override {
    co_return std::vector<ExtendAnswer>(claims.size());
  }
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override {
    return real_->release(std::move(claim), search, deadline);
  }
  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override {
    return real_->inspect(std::move(name), deadline);
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override {
    return real_->list(std::move(prefix), deadline);
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override {
    return real_->evict(std::move(request), deadline);
  }
  asio::awaitable<void> close(TimePoint deadline) override { return real_->close(deadline); }

 private:
  const std::unique_ptr<Backend> real_;
  Capabilities capabilities_;
};

const BackendDescriptor& ending() {
  static const BackendDescriptor descriptor = [] {
    auto made = memory::backend();
    made.create = [](const StoreOptions& options, Env& env, EventSink& sink) {
      std::unique_ptr<Backend> wrapped =
          std::make_unique<Ending>(memory::backend().create(options, env, sink));
      return wrapped;
    };
    return made;
  }();
  return descriptor;
}

/// When one handle was told, by its stop token and by its callback.
struct Told {
  std::atomic<TimePoint::rep> stopped = 0;
  std::atomic<TimePoint::rep> called = 0;
  static void note(std::atomic<TimePoint::rep>& when) {
    when = BoottimeClock::now().time_since_epoch().count();
  }
};

Duration late(const std::atomic<TimePoint::rep>& when, TimePoint deadline) {
  return TimePoint(Duration(when.load())) - deadline;
}

struct Round {
  std::vector<Duration> stops;
  std::vector<Duration> calls;
  Duration machine{};  ///< how late a thread that only sleeps until the deadline wakes up
};

/// Of locks that are all taken within `time` from now; empty: the machine was too busy for that.
std::optional<Round> lose_all(LockManager& locks, int round, Duration time) {
  const auto end = BoottimeClock::now() + time;
  leases_end = end.time_since_epoch().count();
  std::vector<std::unique_ptr<Told>> told;
  std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> stops;
  std::vector<LockHandle> handles;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    auto& one = *told.emplace_back(std::make_unique<Told>());
    error_code ec;
    auto& handle = handles.emplace_back(
        locks.lock(fmt::format("{}/{}", round, i))->acquire({.wait = 1s}, {}, ec));
    if (ec || !handle.remaining()) return std::nullopt;
    handle.on_state([&one](HandleState state, LossReason) {
      if (state == HandleState::lost) Told::note(one.called);
    });
    stops.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
        handle.stop_token(), [&one] { Told::note(one.stopped); }));
  }
  const auto before = BoottimeClock::now();
  const auto deadline = before + handles.front().remaining().value_or(Duration::zero());
  if (deadline <= before) return std::nullopt;
  Round result;
  std::this_thread::sleep_for(deadline - BoottimeClock::now());
  result.machine = BoottimeClock::now() - deadline;
  for (const auto& one : told) {
    const auto until = BoottimeClock::now() + 10s;
    while (one->called == 0 && BoottimeClock::now() < until) std::this_thread::sleep_for(1ms);
    result.stops.push_back(late(one->stopped, deadline));
    result.calls.push_back(late(one->called, deadline));
  }
  return result;
}

/// Prints the distribution; how many are later than that.
std::size_t judge(const char* what, std::vector<Duration> all, Duration bound) {
  std::sort(all.begin(), all.end());
  const auto at = [&](double part) {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(all.size() - 1));
    return std::chrono::duration<double, std::milli>(all[index]).count();
  };
  const auto over =
      std::count_if(all.begin(), all.end(), [&](Duration one) { return one > bound; });
  fmt::print(
      "{}: of {}: median {:.2f} ms, 99 % {:.2f}, 99.9 % {:.2f}, last {:.2f}; {} later than {:.0f} "
      "ms\n",
      what, all.size(), at(0.5), at(0.99), at(0.999), at(1), over,
      std::chrono::duration<double, std::milli>(bound).count());
  return static_cast<std::size_t>(over);
}

TEST(LossTold, P01_WithinTenMillisecondsOfTheDeadlineWhateverUserCodeDoes) {
  std::promise<void> end;
  const auto over = end.get_future().share();
  OpenOptions options;
  options.backends = {&ending()};
  options.log = [over](LogLevel, std::string_view) { over.wait(); };
  auto locks = LockManager::open("memory://loss_told?drift_margin=100ms", std::move(options));
  locks.connect();
  dynamic_cast<core::Engine&>(locks.lock("any")->context())
      .log(LogLevel::warning, "the log is stuck");
  locks.lock("handler")->async_acquire([over](error_code, LockHandle) { over.wait(); });
  leases_end = (BoottimeClock::now() + 1s).time_since_epoch().count();
  std::atomic<bool> asleep = false;
  auto sleeper = locks.lock("sleeper")->acquire();
  sleeper.on_state([over, &asleep](HandleState, LossReason) {
    asleep = true;
    over.wait();
  });
  // Whatever is thrown: the handle waits for its callback.
  struct Waking {
    std::promise<void>& end;
    ~Waking() { end.set_value(); }
  } const waking{end};
  const auto latest = BoottimeClock::now() + 30s;
  while (!asleep && BoottimeClock::now() < latest) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(asleep);
  std::vector<Duration> stops;
  std::vector<Duration> calls;
  // A round in which the machine itself was late says nothing; on a busy one all count, less that.
  int rounds = 0;
  Duration time = 700ms;
  for (int tries = 0; rounds < kRounds && time < 60s; ++tries) {
    const auto round = lose_all(locks, tries, time);
    if (!round) {
      time *= 2;
      continue;
    }
    fmt::print("round {}: a mere sleeper wakes {:.2f} ms late\n", tries,
               std::chrono::duration<double, std::milli>(round->machine).count());
    if (round->machine > 1ms && tries < 2 * kRounds) continue;
    ++rounds;
    const auto less = round->machine > 1ms ? round->machine : Duration::zero();
    for (const auto one : round->stops) stops.push_back(one - less);
    for (const auto one : round->calls) calls.push_back(one - less);
  }
  EXPECT_EQ(rounds, kRounds);
  EXPECT_LE(judge("stops", stops, kBound), kAtOnce * kRounds / 1000);
  EXPECT_LE(judge("callbacks", calls, kBound), kAtOnce * kRounds / 1000);
}

}  // namespace
}  // namespace dlock

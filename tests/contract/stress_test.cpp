// SPDX-License-Identifier: Apache-2.0
//
// Everything at once, at random: threads acquire, stop waiting, cancel by slots on strands, move,
// drop and release handles, look at them, and close managers under all of it. For the sanitizers;
// without them, a test that nothing hangs and that nothing is left.
#include <algorithm>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

namespace asio = boost::asio;
using std::chrono::microseconds;

constexpr unsigned kSeed = 20261122;
constexpr auto kLong = 4s;

class Dice {
 public:
  explicit Dice(unsigned stream) : random_(kSeed + stream) {}
  int upto(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  bool once_in(int times) { return upto(times - 1) == 0; }
  microseconds moment(microseconds longest) {
    return microseconds(upto(static_cast<int>(longest.count())));
  }

 private:
  std::mt19937 random_;
};

class StressContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    locks_ = connected();
  }

  /// A busy store may take longer to reach than any of the waits.
  std::shared_ptr<LockManager> connected() {
    auto manager = std::make_shared<LockManager>(open());
    manager->connect();
    return manager;
  }

  /// The manager of now; another thread may close it at any moment.
  std::shared_ptr<LockManager> locks() {
    const std::lock_guard guard(mutex_);
    return locks_;
  }
  static std::string name(Dice& dice) { return "stress/" + std::to_string(dice.upto(2)); }
  bool over() const {
    const auto late = testkit::Clock::now() - end_;
    return grants_ > 0 ? late >= 0s : late >= 60s;
  }

  /// With what a busy store and a manager that closes may say.
  LockHandle acquire(Dice& dice, std::stop_token stop) {
    error_code ec;
    AcquireOptions options;
    // Now and then long enough for a busy store to grant.
    options.wait = dice.once_in(8) ? 2s : std::chrono::milliseconds(dice.upto(30));
    auto got = locks()->lock(name(dice))->acquire(options, std::move(stop), ec);
    if (got) ++grants_;
    EXPECT_NE(static_cast<bool>(got), static_cast<bool>(ec));
    EXPECT_TRUE(!ec || ec == errc::timed_out || ec == errc::cancelled || ec == errc::closed ||
                ec == errc::unavailable)
        << ec.message();
    return got;
  }

  void hold_move_and_release(Dice dice);
  void be_stopped(Dice dice);
  void cancel_by_slots(Dice dice);
  void close_managers(Dice dice);

  std::mutex mutex_;
  std::shared_ptr<LockManager> locks_;
  std::atomic<int> grants_ = 0;
  const testkit::Clock::time_point end_ = testkit::Clock::now() + kLong;
};
DLOCK_CONTRACT(StressContract);

void StressContract::hold_move_and_release(Dice dice) {
  std::vector<LockHandle> kept(3);
  auto seen = std::make_shared<std::atomic<int>>(0);
  while (!over()) {
    auto got = acquire(dice, {});
    if (got) {
      got.on_state([seen](HandleState, LossReason) { ++*seen; });
      std::thread reader([&got] {
        error_code ec;
        got.check(ec);
        (void)got.stop_token().stop_requested();
        (void)got.remaining();
      });
      if (dice.once_in(2)) std::this_thread::sleep_for(dice.moment(500us));
      reader.join();
    }
    // What is in its place is dropped by that.
    auto& place = kept[static_cast<std::size_t>(dice.upto(2))];
    place = std::move(got);
    if (dice.once_in(3)) place.release();
    if (dice.once_in(4)) std::swap(kept[0], kept[1]);
  }
}

void StressContract::be_stopped(Dice dice) {
  while (!over()) {
    std::stop_source stop;
    std::thread stopping([&stop, pause = dice.moment(3ms)] {
      std::this_thread::sleep_for(pause);
      stop.request_stop();
    });
    auto got = acquire(dice, stop.get_token());
    stopping.join();
  }
}

/// One acquire and its cancellation, both on a strand. Its handler owns the signal, as Asio allows:
/// the slot is gone with it.
struct Attempt : std::enable_shared_from_this<Attempt> {
  using Strand = asio::strand<asio::io_context::executor_type>;
  explicit Attempt(asio::io_context& loop) : strand(asio::make_strand(loop)), pause(strand) {}

  void start(const std::shared_ptr<DistributedLock>& lock, microseconds until_cancelled,
             std::atomic<int>& under_way) {
    ++under_way;
    pause.expires_after(until_cancelled);
    pause.async_wait([weak = weak_from_this()](error_code) {
      if (const auto self = weak.lock()) self->signal.emit(asio::cancellation_type::total);
    });
    AcquireOptions options;
    options.wait = 30ms;
    lock->async_acquire(
        options,
        asio::bind_cancellation_slot(
            signal.slot(), asio::bind_executor(strand, [self = shared_from_this(), &under_way](
                                                           error_code, LockHandle) {
              self->pause.cancel();
              --under_way;
            })));
  }

  Strand strand;
  asio::steady_timer pause;
  asio::cancellation_signal signal;
};

void StressContract::cancel_by_slots(Dice dice) {
  asio::io_context loop;
  auto work = asio::make_work_guard(loop);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&loop] { loop.run(); });
  std::atomic<int> under_way = 0;
  while (!over()) {
    if (under_way < 8) {
      auto attempt = std::make_shared<Attempt>(loop);
      const auto lock = locks()->lock(name(dice));
      asio::post(attempt->strand, [attempt, lock, until = dice.moment(4ms), &under_way] {
        attempt->start(lock, until, under_way);
      });
    }
    std::this_thread::sleep_for(dice.moment(400us));
  }
  EXPECT_TRUE(eventually(patience(), [&] { return under_way == 0; }));
  work.reset();
  for (auto& thread : threads) thread.join();
}

void StressContract::close_managers(Dice dice) {
  std::chrono::milliseconds least = 100ms;
  while (!over()) {
    std::this_thread::sleep_for(least + dice.moment(300ms));
    // On a machine so busy that none of them lives to see a grant.
    if (grants_ == 0) least = std::min<std::chrono::milliseconds>(least * 2, 5s);
    auto next = connected();
    std::shared_ptr<LockManager> old;
    {
      const std::lock_guard guard(mutex_);
      old = std::exchange(locks_, next);
    }
    if (dice.once_in(2)) old->close();
  }
}

TEST_P(StressContract, EverythingAtOnce) {
  RecordProperty("seed", static_cast<int>(kSeed));
  std::vector<std::thread> threads;
  threads.emplace_back([&] { hold_move_and_release(Dice(1)); });
  threads.emplace_back([&] { hold_move_and_release(Dice(2)); });
  threads.emplace_back([&] { be_stopped(Dice(3)); });
  threads.emplace_back([&] { be_stopped(Dice(4)); });
  threads.emplace_back([&] { cancel_by_slots(Dice(5)); });
  threads.emplace_back([&] { close_managers(Dice(6)); });
  for (auto& thread : threads) thread.join();
  EXPECT_GT(grants_.load(), 0);
  RecordProperty("grants", grants_.load());
  locks_->close();
  for (int i = 0; i <= 2; ++i) EXPECT_TRUE(becomes_free("stress/" + std::to_string(i)));
}

}  // namespace
}  // namespace dlock::contract

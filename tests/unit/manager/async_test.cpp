// SPDX-License-Identifier: Apache-2.0
//
// Cancellation slots: when they are touched, on which thread, and that nothing of ours stays in
// them. On the memory store, where an acquire may be over before its initiating call returns.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>

#include "dlock/async.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"

namespace dlock::tests {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

LockManager open(const std::string& store) {
  return LockManager::open("memory://" + store, {.backends = {&memory::backend()}});
}

/// A lock that does something of the test's after an acquire has begun, before the initiating call
/// has gone on.
class Hooked final : public DistributedLock {
 public:
  explicit Hooked(std::shared_ptr<DistributedLock> lock) : lock_(std::move(lock)) {}
  const std::string& name() const noexcept override { return lock_->name(); }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    auto cancel = lock_->start_acquire(options, std::move(handler));
    if (begun) begun();
    return cancel;
  }

  std::function<void()> begun;

 private:
  const std::shared_ptr<DistributedLock> lock_;
};

TEST(AsyncSlots, AHandlerThatOwnsTheSignalMayBeDoneBeforeTheInitiatingCall) {
  auto manager = open("async-first");
  asio::thread_pool pool(1);
  Hooked lock(manager.lock("a"));
  std::promise<bool> ended;
  auto has_ended = ended.get_future();
  std::optional<bool> had_slot;
  lock.begun = [&] { had_slot = has_ended.get(); };
  auto signal = std::make_unique<asio::cancellation_signal>();
  const auto slot = signal->slot();
  lock.async_acquire(asio::bind_cancellation_slot(
      slot, asio::bind_executor(pool.get_executor(),
                                [&ended, signal = std::move(signal)](error_code ec, LockHandle) {
                                  EXPECT_FALSE(ec) << ec.message();
                                  ended.set_value(signal->slot().has_handler());
                                })));
  pool.join();
  ASSERT_TRUE(had_slot);
  EXPECT_FALSE(*had_slot) << "the slot is cleared before the handler";
}

TEST(AsyncSlots, ACancelBeforeTheInitiatingCallHasReturnedCounts) {
  auto manager = open("async-early");
  const auto held = manager.lock("a")->acquire();
  asio::thread_pool pool(1);
  Hooked lock(manager.lock("a"));
  asio::cancellation_signal signal;
  lock.begun = [&] { signal.emit(asio::cancellation_type::terminal); };
  std::promise<error_code> ended;
  AcquireOptions options;
  options.wait = 30s;
  lock.async_acquire(
      options, asio::bind_cancellation_slot(
                   signal.slot(), asio::bind_executor(pool, [&](error_code ec, const LockHandle&) {
                     ended.set_value(ec);
                   })));
  EXPECT_EQ(ended.get_future().get(), errc::cancelled);
  pool.join();
  EXPECT_FALSE(signal.slot().has_handler());
}

TEST(AsyncSlots, AnEmissionAfterTheEndOrOfNoTypeIsIgnored) {
  auto manager = open("async-late");
  auto held = manager.lock("a")->acquire();
  asio::thread_pool pool(1);
  asio::cancellation_signal signal;
  std::promise<error_code> ended;
  manager.lock("a")->async_acquire(asio::bind_cancellation_slot(
      signal.slot(), asio::bind_executor(pool, [&](error_code ec, const LockHandle&) {
        signal.emit(asio::cancellation_type::terminal);
        ended.set_value(ec);
      })));
  asio::post(pool, [&] {
    signal.emit(asio::cancellation_type::none);
    held = LockHandle();
  });
  EXPECT_FALSE(ended.get_future().get());
  pool.join();
}

/// Acquires again and again, each time with a signal that the handler owns, and emits it from the
/// strand sooner or later, or not at all.
class Actor : public std::enable_shared_from_this<Actor> {
 public:
  struct Counts {
    std::atomic<int> left;
    std::atomic<int> granted = 0;
    std::atomic<int> cancelled = 0;
    std::atomic<int> other = 0;
  };

  Actor(asio::thread_pool& pool, std::shared_ptr<DistributedLock> lock, Counts& counts)
      : strand_(asio::make_strand(pool.get_executor())), lock_(std::move(lock)), counts_(counts) {}

  void start() {
    asio::post(strand_, [self = shared_from_this()] { self->round(); });
  }

 private:
  void round() {
    const int left = --counts_.left;
    if (left < 0) return;
    auto signal = std::make_shared<asio::cancellation_signal>();
    const std::weak_ptr<asio::cancellation_signal> weak = signal;
    if (left % 3 == 0) emit_from_strand(weak);  // may come before the acquire is posted
    const auto slot = signal->slot();
    lock_->async_acquire(asio::bind_cancellation_slot(
        slot, asio::bind_executor(strand_, [self = shared_from_this(), signal = std::move(signal)](
                                               error_code ec, LockHandle held) mutable {
          EXPECT_FALSE(signal->slot().has_handler());
          signal.reset();
          held = LockHandle();
          auto& count = !ec                     ? self->counts_.granted
                        : ec == errc::cancelled ? self->counts_.cancelled
                                                : self->counts_.other;
          ++count;
          self->round();
        })));
    if (left % 3 == 1) emit_from_strand(weak);
  }

  void emit_from_strand(std::weak_ptr<asio::cancellation_signal> weak) {
    asio::post(strand_, [weak = std::move(weak)] {
      if (const auto signal = weak.lock()) signal->emit(asio::cancellation_type::total);
    });
  }

  asio::strand<asio::thread_pool::executor_type> strand_;
  const std::shared_ptr<DistributedLock> lock_;
  Counts& counts_;
};

TEST(AsyncSlots, StrandsWhoseHandlersOwnTheirSignals) {
  constexpr int kRounds = 10'000;
  auto manager = open("async-strands");
  Actor::Counts counts{kRounds};
  asio::thread_pool pool(4);
  for (int i = 0; i < 12; ++i) {
    std::make_shared<Actor>(pool, manager.lock("n/" + std::to_string(i % 4)), counts)->start();
  }
  pool.join();
  EXPECT_EQ(counts.granted + counts.cancelled, kRounds);
  EXPECT_EQ(counts.other, 0);
  EXPECT_GT(counts.granted, 0);
  EXPECT_GT(counts.cancelled, 0);
}

/// An executor of which the test knows how many copies there are, and how many others there were
/// when the last that was at work went.
class Counted {
 public:
  struct Shared {
    explicit Shared(asio::io_context& loop) : context(loop) {}
    asio::io_context& context;
    long copies_beside_the_work = -1;
  };

  explicit Counted(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  Counted(const Counted&) noexcept = default;
  Counted(Counted&&) noexcept = default;
  Counted& operator=(const Counted&) noexcept = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() {
    if (at_work_ && shared_) shared_->copies_beside_the_work = shared_.use_count() - 1;
  }

  Counted require(asio::execution::outstanding_work_t::tracked_t) const {
    auto copy = *this;
    copy.at_work_ = true;
    return copy;
  }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  asio::io_context& query(asio::execution::context_t) const noexcept { return shared_->context; }
  template <class Work>
  void execute(Work work) const {
    asio::post(shared_->context, std::move(work));
  }
  bool operator==(const Counted&) const noexcept = default;

 private:
  std::shared_ptr<Shared> shared_;
  bool at_work_ = false;
};

// ThreadSanitizer saw it: a program's io_context had run out of work and was gone when dlock's
// thread gave back the strand of a handler that had been called.
TEST(AsyncExecutor, NothingOfItIsLeftWhenItsWorkIsDone) {
  asio::io_context loop;
  const auto shared = std::make_shared<Counted::Shared>(loop);
  const Counted executor(shared);
  const auto mine = shared.use_count();
  int result = 0;
  auto carrier = detail::on_executor<int>(
      asio::bind_executor(executor, [&result](int value) { result = value; }), executor, [] {});
  EXPECT_GT(shared.use_count(), mine);
  carrier(5);
  // In what was posted there is the handler, and it alone.
  EXPECT_EQ(shared.use_count(), mine + 1);
  EXPECT_EQ(shared->copies_beside_the_work, mine + 1);
  loop.run();
  EXPECT_EQ(result, 5);
  EXPECT_EQ(shared.use_count(), mine);
}

TEST(AsyncExecutor, OneThatIsNeverCalledGoesBeforeItsWork) {
  asio::io_context loop;
  const auto shared = std::make_shared<Counted::Shared>(loop);
  const Counted executor(shared);
  const auto mine = shared.use_count();
  {
    const auto carrier =
        detail::on_executor<int>(asio::bind_executor(executor, [](int) {}), executor, [] {});
  }
  EXPECT_EQ(shared->copies_beside_the_work, mine);
  EXPECT_EQ(shared.use_count(), mine);
}

}  // namespace
}  // namespace dlock::tests

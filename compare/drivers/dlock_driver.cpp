// SPDX-License-Identifier: Apache-2.0
//
// dlock as an application uses it: one manager for the process, its public API and nothing else.
#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "compare/drivers/driver.hpp"
#include "compare/drivers/worker.hpp"
#include "dlock/async.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::compare {
namespace {

namespace asio = boost::asio;

class DlockClient : public Client {
 public:
  explicit DlockClient(std::shared_ptr<DistributedLock> lock, Mode mode = Mode::exclusive)
      : lock_(std::move(lock)), mode_(mode) {}
  void acquire() override { held_ = lock_->acquire({.mode = mode_}); }
  void release() override {
    if (const auto error = held_.release()) throw std::runtime_error(error.message());
  }

 private:
  std::shared_ptr<DistributedLock> lock_;
  const Mode mode_;
  LockHandle held_;
};

/// Claims under way: handles that were granted, and those that still wait.
class DlockCrowd : public Crowd {
 public:
  ~DlockCrowd() override {
    for (auto& cancel : cancels_) cancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ == started_; });
  }

  void start(const std::shared_ptr<DistributedLock>& lock) {
    {
      const std::scoped_lock guard(mutex_);
      ++started_;
    }
    locks_.push_back(lock);
    cancels_.push_back(
        lock->start_acquire({.wait = kWaitForever}, [this](error_code error, LockHandle handle) {
          const std::scoped_lock guard(mutex_);
          ++ended_;
          if (!error) held_.push_back(std::move(handle));
          changed_.notify_all();
        }));
  }

  void wait_for_grants(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() == count || ended_ == started_; });
    if (held_.size() < count) throw std::runtime_error("an acquire of the crowd failed");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  std::vector<std::shared_ptr<DistributedLock>> locks_;
  std::vector<detail::Canceller> cancels_;
  std::vector<LockHandle> held_;
};

/// Coroutines on a loop of their own.
class DlockTasks : public Tasks {
 public:
  explicit DlockTasks(std::vector<std::shared_ptr<DistributedLock>> locks)
      : locks_(std::move(locks)) {}

  void run(const std::atomic<bool>& over, const OnPair& on_pair) override {
    asio::io_context loop;
    auto work = asio::make_work_guard(loop);
    std::size_t left = locks_.size();
    for (const auto& lock : locks_) {
      asio::co_spawn(loop, turns(*lock, over, on_pair), [&](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
        if (--left == 0) work.reset();
      });
    }
    loop.run();
  }

 private:
  static asio::awaitable<void> turns(DistributedLock& lock, const std::atomic<bool>& over,
                                     const OnPair& on_pair) {
    do {
      const auto start = now_ns();
      auto held = co_await lock.async_acquire(asio::use_awaitable);
      const auto got = now_ns();
      co_await async_release(held, asio::use_awaitable);
      on_pair(got - start, now_ns() - start);
    } while (!over.load(std::memory_order_relaxed));
  }

  std::vector<std::shared_ptr<DistributedLock>> locks_;
};

class DlockDriver : public Driver {
 public:
  explicit DlockDriver(const std::string& url) : locks_(LockManager::open(url, quiet())) {
    locks_.connect();
  }

  std::unique_ptr<Client> client(const std::string& lock, Use) override {
    return std::make_unique<DlockClient>(locks_.lock(lock));
  }

  std::unique_ptr<Client> reader(const std::string& lock) override {
    return std::make_unique<DlockClient>(locks_.lock(lock), Mode::shared);
  }

  std::unique_ptr<Client> permit(const std::string& semaphore, std::uint32_t limit) override {
    return std::make_unique<DlockClient>(locks_.semaphore(semaphore, limit).permits());
  }

  std::unique_ptr<Tasks> tasks(const std::string& lock, std::int64_t count) override {
    std::vector<std::shared_ptr<DistributedLock>> locks;
    for (std::int64_t i = 0; i < count; ++i) {
      locks.push_back(locks_.lock(fmt::format("{}/{}", lock, i)));
    }
    return std::make_unique<DlockTasks>(std::move(locks));
  }

  std::unique_ptr<Crowd> holders(int count) override {
    auto crowd = std::make_unique<DlockCrowd>();
    for (int i = 0; i < count; ++i)
      crowd->start(locks_.lock(fmt::format("dlock-compare/many/{}", i)));
    crowd->wait_for_grants(static_cast<std::size_t>(count));
    return crowd;
  }

  std::unique_ptr<Crowd> waiters(int count) override {
    auto crowd = std::make_unique<DlockCrowd>();
    const auto lock = locks_.lock("dlock-compare/one");
    crowd->start(lock);
    crowd->wait_for_grants(1);
    for (int i = 0; i < count; ++i) crowd->start(lock);
    return crowd;
  }

 private:
  // The suite reports what a store promises; a warning in each worker would only be noise.
  static OpenOptions quiet() {
    auto options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }

  LockManager locks_;
};

}  // namespace

std::unique_ptr<Driver> make_dlock_driver(const std::string& url) {
  return std::make_unique<DlockDriver>(url);
}

}  // namespace dlock::compare

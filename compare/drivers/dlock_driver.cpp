// SPDX-License-Identifier: Apache-2.0
//
// dlock as an application uses it: one manager for the process, its public API and nothing else.
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "compare/drivers/driver.hpp"
#include "dlock/async.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::compare {
namespace {

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

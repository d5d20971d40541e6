// SPDX-License-Identifier: Apache-2.0
//
// What ./scripts/cost counts: very many of one process that wait for one lock. Says what each takes
// of memory, and of our processor's time to join, the first tenth and the last. Fails if threads
// became more with them, if not all were served, or two at once.
//
//   dlock-crowd URL COUNT
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kPatience = 300s;
constexpr int kLooks = 5;
constexpr std::size_t kHelpers = 2;  // a store may have them, and they come and go
constexpr const char* kName = "cost/crowd";

std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t threads() {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<std::size_t>(std::distance(Entries("/proc/self/task"), Entries()));
}

double processor_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

void await(const char* what, const std::function<bool()>& is_so) {
  const auto until = Clock::now() + kPatience;
  while (!is_so()) {
    if (Clock::now() > until) throw std::runtime_error(std::string("in vain for: ") + what);
    std::this_thread::sleep_for(20ms);
  }
}

/// Who comes in one after the other, and goes at once.
class Crowd {
 public:
  explicit Crowd(dlock::LockManager& locks) : locks_(locks), lock_(locks.lock(kName)) {}

  void join(std::size_t more) {
    for (std::size_t i = 0; i < more; ++i) {
      lock_->async_acquire({.wait = kPatience}, [this](dlock::error_code ec,
                                                       dlock::LockHandle held) { pass(ec, held); });
    }
    joined_ += more;
    looks_ = 0;
    await("all to wait", [this] { return ++looks_, waiting() >= joined_; });
  }
  /// Of our processor's time, for each of `more` that join, without the looks whether all do.
  double cost_of(std::size_t more) {
    const auto before = processor_us();
    join(more);
    const auto all = processor_us() - before;
    const auto looks = looks_;
    const auto before_looks = processor_us();
    for (int i = 0; i < kLooks; ++i) waiting();
    const auto look = (processor_us() - before_looks) / kLooks;
    return (all - look * static_cast<double>(looks)) / static_cast<double>(more);
  }
  void await_served() {
    await("all to be served", [this] { return served_ + failed_ == joined_; });
  }
  std::size_t served() const { return served_; }
  std::size_t overlaps() const { return overlaps_; }

 private:
  /// A store names the first thousand, and says in a note how many there are.
  std::size_t waiting() {
    const auto status = locks_.status(kName);
    std::size_t most = status.waiting.size();
    for (const auto& note : status.notes) {
      const auto number = std::strtoul(note.c_str(), nullptr, 10);
      if (number > most && number <= joined_ + 1) most = number;
    }
    return most;
  }
  void pass(dlock::error_code ec, dlock::LockHandle& held) {
    if (ec) {
      ++failed_;
      return;
    }
    if (++inside_ != 1) ++overlaps_;
    --inside_;
    ++served_;
    auto kept = std::make_shared<dlock::LockHandle>(std::move(held));
    dlock::async_release(*kept, [kept](dlock::error_code) {});
  }

  dlock::LockManager& locks_;
  const std::shared_ptr<dlock::DistributedLock> lock_;
  std::size_t joined_ = 0;
  std::size_t looks_ = 0;
  std::atomic<std::size_t> served_{0};
  std::atomic<std::size_t> failed_{0};
  std::atomic<std::size_t> overlaps_{0};
  std::atomic<int> inside_{0};
};

void run(const std::string& url, std::size_t count) {
  auto locks = dlock::LockManager::open(url);
  auto held = locks.lock(kName)->acquire();
  Crowd crowd(locks);
  crowd.join(1);
  const auto threads_before = threads();
  const auto bytes_before = allocated();
  const auto tenth = count / 10;
  const auto first = crowd.cost_of(tenth);
  crowd.join(count - 2 * tenth - 1);
  const auto last = crowd.cost_of(tenth);
  const auto bytes = (allocated() - bytes_before) / (count - 1);
  const auto threads_with_all = threads();
  const auto since = Clock::now();
  if (const auto error = held.release()) throw std::runtime_error(error.message());
  crowd.await_served();
  const std::chrono::duration<double> taken = Clock::now() - since;
  if (crowd.served() != count) throw std::runtime_error("not all were served");
  if (crowd.overlaps() != 0) throw std::runtime_error("two had the lock at once");
  if (threads_with_all > threads_before + kHelpers) {
    throw std::runtime_error(std::to_string(threads_with_all) + " threads with all, " +
                             std::to_string(threads_before) + " before");
  }
  std::cout << "bytes " << bytes << "\nfirst " << first << "\nlast " << last << "\nserved "
            << taken.count() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc == 3 ? std::atol(argv[2]) : 0;
  if (count < 100) {
    std::cerr << "usage: dlock-crowd URL COUNT (100 or more)\n";
    return 64;
  }
  try {
    run(argv[1], static_cast<std::size_t>(count));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dlock-crowd: " << error.what() << '\n';
    return 1;
  }
}

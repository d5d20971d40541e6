// SPDX-License-Identifier: Apache-2.0
#include "core/leader/observers.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/leader/of_process.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {
namespace {

using Clock = std::chrono::steady_clock;

struct Watched {
  Observation what;
  Clock::time_point due = Clock::now();
  bool has_told = false;
  std::string last;  ///< the id of who led; empty: nobody
};

class Watchmen {
 public:
  ObserverId add(Observation what) {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      start_thread([this]() noexcept { run(); }).detach();
      running_ = true;
    }
    auto entry = std::make_shared<Watched>();
    entry->what = std::move(what);
    entries_.emplace(++last_, std::move(entry));
    changed_.notify_all();
    return last_;
  }

  void look(ObserverId id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second->due = Clock::now();
    changed_.notify_all();
  }

  void remove(ObserverId id) noexcept {
    std::shared_ptr<Watched> dropped;
    Lock lock(mutex_);
    if (const auto found = entries_.find(id); found != entries_.end()) {
      dropped = std::move(found->second);
      entries_.erase(found);
    }
    if (teller_ == std::this_thread::get_id()) return;
    changed_.wait(lock, [&] { return telling_ != id; });
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run() noexcept {
    Lock lock(mutex_);
    while (!entries_.empty()) {
      const auto next = std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& one, const auto& other) { return one.second->due < other.second->due; });
      // By value: the entry may go while it is waited for.
      const auto due = next->second->due;
      if (due > Clock::now()) {
        changed_.wait_until(lock, due);
        continue;
      }
      serve(lock, next->first, next->second);
    }
    running_ = false;
  }

  void serve(Lock& lock, ObserverId id, std::shared_ptr<Watched> entry) noexcept {
    entry->due = Clock::now() + entry->what.every;
    lock.unlock();
    std::optional<Owner> leader;
    bool known = false;
    bool over = false;
    try {
      leader = entry->what.look();
      known = true;
    } catch (const LockError& error) {
      over = error.code() == errc::closed;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): asked again
    }
    lock.lock();
    const bool present = entries_.contains(id);
    if (over && present) entries_.erase(id);
    if (!known || !present) return;
    const auto who = leader ? leader->id : std::string();
    if (entry->has_told && who == entry->last) return;
    entry->has_told = true;
    entry->last = who;
    tell(lock, id, *entry, leader);
  }

  void tell(Lock& lock, ObserverId id, const Watched& entry,
            const std::optional<Owner>& leader) noexcept {
    telling_ = id;
    teller_ = std::this_thread::get_id();
    lock.unlock();
    try {
      entry.what.tell(leader);
    } catch (...) {  // NOLINT(bugprone-empty-catch): forbidden, and nobody's to hear
    }
    lock.lock();
    telling_ = 0;
    teller_ = {};
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ObserverId, std::shared_ptr<Watched>> entries_;
  ObserverId last_ = 0;
  ObserverId telling_ = 0;
  std::thread::id teller_;
  bool running_ = false;
};

}  // namespace

ObserverId observe(Observation what) { return of_process<Watchmen>().add(std::move(what)); }
void look_now(ObserverId id) noexcept { of_process<Watchmen>().look(id); }
void stop_observing(ObserverId id) noexcept { of_process<Watchmen>().remove(id); }

}  // namespace dlock::core

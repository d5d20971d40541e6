// SPDX-License-Identifier: Apache-2.0
#include "core/leader/observers.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/process/of_process.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {
namespace {

using Clock = std::chrono::steady_clock;

/// Shortest time between two reads of one observer, however often it is notified.
constexpr std::chrono::milliseconds kGap{10};

struct Watched {
  Observation what;
  Clock::time_point due = Clock::now();
  Clock::time_point looked{};  ///< when the last read began
  bool looking = false;
  std::optional<Look> found{};  ///< result of a read, not yet reported
  bool has_told = false;
  std::string last;  ///< id of the last leader; empty: none

  /// When there is something to do for it.
  Clock::time_point next() const {
    if (found) return Clock::time_point::min();
    return looking ? Clock::time_point::max() : due;
  }
};

class Watchmen {
 public:
  ObserverId add(Observation what) {
    auto entry = std::make_shared<Watched>();
    entry->what = std::move(what);
    const std::lock_guard lock(mutex_);
    const auto added = entries_.emplace(last_ + 1, std::move(entry)).first;
    if (!running_) {
      try {
        start_thread([this] { run(); }).detach();
      } catch (...) {
        entries_.erase(added);
        throw;
      }
      running_ = true;
    }
    changed_.notify_all();
    return ++last_;
  }

  void look(ObserverId id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    auto& due = found->second->due;
    due = std::min(due, std::max(Clock::now(), found->second->looked + kGap));
    changed_.notify_all();
  }

  void remove(ObserverId id) noexcept {
    std::shared_ptr<Watched> dropped;
    Lock lock(mutex_);
    if (const auto found = entries_.find(id); found != entries_.end()) {
      dropped = std::move(found->second);
      entries_.erase(found);
      changed_.notify_all();
    }
    if (at_work_ == std::this_thread::get_id()) return;
    changed_.wait(lock, [&] { return busy_with_ != id; });
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Entry = std::shared_ptr<Watched>;

  void run() {
    Lock lock(mutex_);
    while (!entries_.empty()) {
      const auto next = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& one, const auto& other) {
                                           return one.second->next() < other.second->next();
                                         });
      const auto id = next->first;
      const auto entry = next->second;  // may go while it is served
      const auto when = entry->next();
      if (entry->found) {
        settle(lock, id, *entry);
      } else if (when == Clock::time_point::max()) {
        changed_.wait(lock);
      } else if (when > Clock::now()) {
        changed_.wait_until(lock, when);
      } else {
        begin_look(lock, id, *entry);
      }
    }
    running_ = false;
  }

  void begin_look(Lock& lock, ObserverId id, Watched& entry) {
    entry.looked = Clock::now();
    entry.due = entry.looked + entry.what.every;
    entry.looking = true;
    unlocked(lock, id, [&] {
      or_end([&] { entry.what.look([this, id](const Look& look) { take(id, look); }); });
    });
  }

  /// Any thread; a result for a removed observer is dropped.
  void take(ObserverId id, const Look& look) {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return;
    entry->second->looking = false;
    entry->second->found = look;
    changed_.notify_all();
  }

  void settle(Lock& lock, ObserverId id, Watched& entry) {
    auto look = *std::exchange(entry.found, std::nullopt);
    if (look.error == errc::closed) entries_.erase(id);
    if (look.error) return;
    const auto is_same = [&] {
      return look.holder ? look.holder->id == entry.last : entry.last.empty();
    };
    if (entry.has_told && is_same()) return;
    entry.has_told = true;
    unlocked(lock, id, [&] { entry.what.tell(look.holder); });
    entry.last = look.holder ? std::move(look.holder->id) : std::string();
  }

  /// Exceptions of `work` are dropped; a read that could not begin has found nothing.
  template <class Work>
  void unlocked(Lock& lock, ObserverId id, const Work& work) {
    busy_with_ = id;
    at_work_ = std::this_thread::get_id();
    lock.unlock();
    bool thrown = false;
    try {
      work();
    } catch (...) {
      thrown = true;
    }
    lock.lock();
    const auto entry = entries_.find(id);
    if (thrown && entry != entries_.end()) entry->second->looking = false;
    busy_with_ = 0;
    at_work_ = {};
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ObserverId, Entry> entries_;
  ObserverId last_ = 0;
  ObserverId busy_with_ = 0;
  std::thread::id at_work_;
  bool running_ = false;
};

}  // namespace

ObserverId observe(Observation what) { return of_process<Watchmen>().add(std::move(what)); }
void look_now(ObserverId id) noexcept { of_process<Watchmen>().look(id); }
void stop_observing(ObserverId id) noexcept { of_process<Watchmen>().remove(id); }

}  // namespace dlock::core

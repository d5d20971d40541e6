// SPDX-License-Identifier: Apache-2.0
#include "core/leader/alarms.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "core/process/of_process.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {
namespace {

class Clockwork {
 public:
  AlarmId set(TimePoint when, Ring ring) {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      start_thread([this] { run(); }).detach();
      running_ = true;
    }
    const auto id = ++last_;
    when_.emplace(id, when);
    alarms_.emplace(std::pair(when, id), std::move(ring));
    changed_.notify_all();
    return id;
  }

  void clear(AlarmId id) noexcept {
    Alarms::node_type dropped;  // after the mutex
    const std::lock_guard lock(mutex_);
    const auto found = when_.find(id);
    if (found == when_.end()) return;
    dropped = alarms_.extract({found->second, id});  // none: it rings just now
    when_.erase(found);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Alarms = std::map<std::pair<TimePoint, AlarmId>, Ring>;

  void run() {
    Lock lock(mutex_);
    while (true) {
      if (alarms_.empty()) {
        const bool any = changed_.wait_for(lock, kIdle, [this] { return !alarms_.empty(); });
        if (any) continue;
        running_ = false;
        return;
      }
      const auto left = alarms_.begin()->first.first - BoottimeClock::now();
      if (left > Duration::zero()) {
        changed_.wait_for(lock, std::min<Duration>(left, kLongest));
        continue;
      }
      ring_first(lock);
    }
  }

  void ring_first(Lock& lock) {
    auto alarm = alarms_.extract(alarms_.begin());
    lock.unlock();
    const auto again = alarm.mapped()();
    lock.lock();
    const auto known = when_.find(alarm.key().second);
    if (again && known != when_.end()) {
      known->second = *again;
      alarm.key().first = *again;
      alarms_.insert(std::move(alarm));
      return;
    }
    if (known != when_.end()) when_.erase(known);
    lock.unlock();
    alarm = {};
    lock.lock();
  }

  static constexpr std::chrono::seconds kIdle{1};
  static constexpr std::chrono::hours kLongest{1};

  std::mutex mutex_;
  std::condition_variable changed_;
  Alarms alarms_;
  std::map<AlarmId, TimePoint> when_;
  AlarmId last_ = 0;
  bool running_ = false;
};

}  // namespace

AlarmId set_alarm(TimePoint when, Ring ring) {
  return of_process<Clockwork>().set(when, std::move(ring));
}

void clear_alarm(AlarmId id) noexcept {
  if (id != 0) of_process<Clockwork>().clear(id);
}

}  // namespace dlock::core

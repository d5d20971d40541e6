// SPDX-License-Identifier: Apache-2.0
#include "core/leader/alarms.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "core/leader/of_process.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {
namespace {

class Clockwork {
 public:
  AlarmId set(TimePoint when, std::function<void()> ring) {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      start_thread([this]() noexcept { run(); }).detach();
      running_ = true;
    }
    const auto id = ++last_;
    alarms_.emplace(std::pair(when, id), std::move(ring));
    when_.emplace(id, when);
    changed_.notify_all();
    return id;
  }

  void clear(AlarmId id) noexcept {
    std::function<void()> dropped;
    const std::lock_guard lock(mutex_);
    const auto found = when_.find(id);
    if (found == when_.end()) return;
    auto alarm = alarms_.extract({found->second, id});
    dropped.swap(alarm.mapped());
    when_.erase(found);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run() noexcept {
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
      auto alarm = alarms_.extract(alarms_.begin());
      when_.erase(alarm.key().second);
      lock.unlock();
      alarm.mapped()();
      alarm = {};
      lock.lock();
    }
  }

  static constexpr std::chrono::seconds kIdle{1};
  static constexpr std::chrono::hours kLongest{1};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<TimePoint, AlarmId>, std::function<void()>> alarms_;
  std::map<AlarmId, TimePoint> when_;
  AlarmId last_ = 0;
  bool running_ = false;
};

}  // namespace

AlarmId set_alarm(TimePoint when, std::function<void()> ring) {
  return of_process<Clockwork>().set(when, std::move(ring));
}

void clear_alarm(AlarmId id) noexcept { of_process<Clockwork>().clear(id); }

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#include "core/loop/crew.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {
namespace {

using Clock = std::chrono::steady_clock;

/// The pool that the calling thread belongs to.
thread_local const Crew* own_crew = nullptr;

/// One after the other: as a chain, they would end in a recursion.
void drop_all(std::shared_ptr<Errand> head, std::shared_ptr<Errand> Errand::*next) noexcept {
  while (head) head = std::exchange((*head).*next, nullptr);
}

}  // namespace

Crew::Crew(Limits limits, std::function<void()> short_of_threads) : limits_(limits) {
  if (!short_of_threads) return;
  short_of_threads_ = std::make_shared<const std::function<void()>>(std::move(short_of_threads));
}

// Each thread keeps the pool alive, so no thread works any more.
Crew::~Crew() {
  for (auto& worker : ended_) worker.thread.detach();
  drop_all(std::move(head_), &Errand::next_);
}

void Crew::start() {
  Lock lock(mutex_);
  while (threads_ < limits_.least) hire(lock);
}

void Crew::post(std::shared_ptr<Errand> errand) noexcept {
  Lock lock(mutex_);
  errand->since_ = Clock::now();
  auto* const last = errand.get();
  (tail_ == nullptr ? head_ : tail_->next_) = std::move(errand);
  tail_ = last;
  posted_.notify_one();
  if (is_short()) try_to_hire(lock);
}

void Crew::hire() noexcept {
  Lock lock(mutex_);
  was_told_ = false;
  if (is_short()) try_to_hire(lock);
}

std::shared_ptr<Errand> Crew::take() noexcept {
  const Lock lock(mutex_);
  return pop();
}

// A thread that rests watches the queue: one must exist while the queue is not empty.
bool Crew::is_short() const noexcept {
  return head_ && resting_ + starting_ == 0 && threads_ < limits_.most;
}

void Crew::hire(Lock& lock) {
  const auto place = workers_.emplace(workers_.end());
  try {
    // Under the mutex: the std::thread must be stored before another thread uses it.
    place->thread = start_thread([self = shared_from_this(), place, generation = generation_] {
      self->work(place, generation);
    });
  } catch (...) {
    workers_.erase(place);
    throw;
  }
  ++threads_;
  ++starting_;
  Workers gone;
  gone.splice(gone.end(), ended_);
  if (gone.empty()) return;
  lock.unlock();
  for (auto& worker : gone) worker.thread.join();
  lock.lock();
}

void Crew::try_to_hire(Lock& lock) noexcept {
  try {
    return or_end([&] { hire(lock); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): answered below
  }
  if (was_told_ || !short_of_threads_) return;
  was_told_ = true;
  const auto tell = short_of_threads_;
  lock.unlock();
  or_end(*tell);
  lock.lock();
}

void Crew::work(Workers::iterator self, unsigned generation) {
  own_crew = this;
  Lock lock(mutex_);
  --starting_;
  bool is_going_on = false;
  while (generation == generation_) {
    // A thread that has just ended a task may begin the next one: the number at work does not grow.
    if (!(is_going_on && head_) && !may_begin(Clock::now())) {
      is_going_on = false;
      if (!rest(lock)) break;
      continue;
    }
    is_going_on = true;
    run_next(lock, self, generation);
    if (generation == generation_) continue;
    // finish() has left this thread alone. If no thread can be made, only this one can run the
    // queue.
    while (threads_ == 0 && head_) run_next(lock, {}, generation);
    return;
  }
  if (generation == generation_) {
    --threads_;
    ended_.splice(ended_.end(), workers_, self);
  } else {
    self->has_ended = true;
  }
  changed_.notify_all();
}

// While the others begin one task after the other they need no help.
bool Crew::may_begin(Clock::time_point now) const noexcept {
  return head_ && (working_ == 0 || stuck_at() <= now);
}

Crew::Moment Crew::stuck_at() const noexcept {
  return std::max(head_->since_, last_begun_) + limits_.patience;
}

/// False: the thread is not needed any more.
bool Crew::rest(Lock& lock) noexcept {
  if (!head_ && is_finished_) return false;
  ++resting_;
  auto woken = std::cv_status::no_timeout;
  if (head_) {
    ++watching_;
    posted_.wait_until(lock, stuck_at());
    --watching_;
  } else if (threads_ <= limits_.least) {
    posted_.wait(lock);
  } else {
    woken = posted_.wait_until(lock, Clock::now() + limits_.rest);
  }
  --resting_;
  return head_ || woken == std::cv_status::no_timeout;
}

void Crew::run_next(Lock& lock, Workers::iterator self, unsigned generation) {
  auto errand = pop();
  last_begun_ = Clock::now();
  if (generation == generation_) {
    self->is_working = true;
    ++working_;
  }
  if (head_ && resting_ > 0 && watching_ == 0) posted_.notify_one();
  if (is_short()) try_to_hire(lock);
  lock.unlock();
  errand->run();
  errand.reset();
  lock.lock();
  if (generation != generation_) return;
  self->is_working = false;
  --working_;
  changed_.notify_all();
}

std::shared_ptr<Errand> Crew::pop() noexcept {
  auto errand = std::move(head_);
  if (!errand) return errand;
  head_ = std::exchange(errand->next_, nullptr);
  if (!head_) tail_ = nullptr;
  return errand;
}

void Crew::finish(Clock::time_point until) noexcept {
  std::shared_ptr<Errand> dropped;
  Workers ended;
  {
    Lock lock(mutex_);
    if (own_crew != this) {
      if (is_short()) try_to_hire(lock);
      changed_.wait_until(lock, until,
                          [this] { return threads_ == 0 || (!head_ && working_ == 0); });
      dropped = std::move(head_);
      head_ = nullptr;
      tail_ = nullptr;
    }
    is_finished_ = true;
    short_of_threads_ = nullptr;
    ended = dismiss(lock);
    // Tasks that were posted meanwhile, or left by a task that ends its own pool.
    if (is_short()) try_to_hire(lock);
  }
  for (auto& worker : ended) worker.thread.join();
  drop_all(std::move(dropped), &Errand::next_);
}

/// All threads but those that are at work; they have ended, but for their last instructions.
Crew::Workers Crew::dismiss(Lock& lock) noexcept {
  ++generation_;
  threads_ = 0;
  working_ = 0;
  posted_.notify_all();
  Workers dismissed;
  dismissed.swap(workers_);
  for (auto worker = dismissed.begin(); worker != dismissed.end();) {
    if (worker->is_working) worker->thread.detach();
    worker = worker->is_working ? dismissed.erase(worker) : std::next(worker);
  }
  changed_.wait(lock, [&dismissed] {
    return std::all_of(dismissed.begin(), dismissed.end(),
                       [](const Worker& worker) { return worker.has_ended; });
  });
  dismissed.splice(dismissed.end(), ended_);
  return dismissed;
}

}  // namespace dlock::core

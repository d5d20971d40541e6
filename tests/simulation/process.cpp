// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/process.hpp"

#include <cmath>

#include "tests/simulation/fiber.hpp"
#include "tests/simulation/planted.hpp"
#include "tests/simulation/sim_clock.hpp"

namespace dlock::simulation {

/// Every handler goes to the end of the process's queue.
struct Process::Executor {
  Context* context_ptr;

  asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_ptr; }
  static constexpr asio::execution::blocking_t::never_t query(
      asio::execution::blocking_t) noexcept {
    return {};
  }
  Executor require(asio::execution::blocking_t::never_t) const { return *this; }
  bool operator==(const Executor&) const noexcept = default;
  template <class F>
  void execute(F f) const {
    context_ptr->ready.emplace_back(std::move(f));
    if (context_ptr->process != nullptr) context_ptr->process->wake();
  }
};

Process::Context::~Context() {
  shutdown();
  // What dies with a handler may still queue another.
  while (!ready.empty()) {
    const auto job = std::move(ready.front());
    ready.pop_front();
  }
  destroy();
}

Process::Process(World& world, std::string name, Clock clock)
    : world_(world), name_(std::move(name)), clock_(clock), started_(world.now()) {
  context_.process = this;
}

Process::~Process() {
  context_.process = nullptr;
  for (const auto id : timers_) world_.cancel(id);
}

TimePoint Process::now() const noexcept {
  const auto passed = static_cast<double>((world_.now() - started_ - stood_still_).count());
  return started_ + Duration(std::llround(passed * (1 + clock_.drift)));
}

// A little later rather than earlier: a timer never fires before its time.
TimePoint Process::to_world(TimePoint when) const noexcept {
  const auto passed = static_cast<double>((when - started_).count());
  return started_ + stood_still_ + Duration(std::llround(passed / (1 + clock_.drift)) + 1);
}

std::int64_t Process::wall_clock_ms() const noexcept {
  return 1'700'000'000'000 +
         std::chrono::duration_cast<milliseconds>(world_.now().time_since_epoch()).count() +
         clock_.wall_offset.count();
}

asio::any_io_executor Process::executor() const { return Executor{&context_}; }

TimerId Process::call_at(TimePoint when, Job job) {
  const auto due = std::max(to_world(when), world_.now());
  auto id = std::make_shared<TimerId>(0);
  *id = world_.at(due, [this, id, job = std::move(job)]() mutable {
    timers_.erase(*id);
    due_.emplace(*id, std::move(job));
    deliver([this, id = *id] { run_due(id); });
  });
  timers_.insert(*id);
  return *id;
}

// It may have been cancelled by what ran since it was due.
void Process::run_due(TimerId id) {
  auto due = due_.extract(id);
  if (!due.empty()) due.mapped()();
}

void Process::cancel(TimerId id) noexcept {
  if (timers_.erase(id) != 0) {
    world_.cancel(id);
  } else {
    due_.erase(id);
  }
}

void Process::run_blocking(Job job, Job done) {
  auto ended = std::make_shared<Job>(std::move(done));
  Fiber::start([this, job = std::move(job), ended]() mutable {
    job();
    job = {};
    call_at(now() + microseconds(20), std::move(*ended));
  });
}

void Process::deliver(Job job) {
  context_.ready.push_back(std::move(job));
  wake();
}

void Process::wake() {
  if (scheduled_ || paused_) return;
  scheduled_ = true;
  world_.runnable(*this);
}

void Process::pause() {
  paused_ = true;
  paused_at_ = world_.now();
}

void Process::resume() {
  paused_ = false;
  resumed_ = world_.now();
  // A clock that stops in suspend, and its timers with it.
  if (is_planted("clock_stops_in_suspend")) stood_still_ += world_.now() - paused_at_;
  if (!context_.ready.empty()) wake();
}

void Process::run_ready() {
  scheduled_ = false;
  running_process = this;
  while (!paused_ && !context_.ready.empty()) {
    auto job = std::move(context_.ready.front());
    context_.ready.pop_front();
    job();
  }
  running_process = nullptr;
}

}  // namespace dlock::simulation

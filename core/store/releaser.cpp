// SPDX-License-Identifier: Apache-2.0
#include "core/store/releaser.hpp"

#include <algorithm>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"

namespace dlock::core {

struct Releaser::Waiter : std::enable_shared_from_this<Waiter> {
  Waiter(Env& loop, std::shared_ptr<const TimePoint> answered)
      : env(loop), answered_at(std::move(answered)) {}

  Env& env;
  std::shared_ptr<const TimePoint> answered_at;  ///< when the store last answered a release
  Done done{};
  TimerId timer = 0;
  Patience patience{};
  TimePoint latest = kNever;

  void wait_until(TimePoint when) {
    timer = env.call_at(std::min(when, latest), [self = shared_from_this()] {
      self->timer = 0;
      self->on_timer();
    });
  }
  void on_timer() {
    const auto now = env.now();
    const auto when = std::min(*answered_at + patience.silence, latest);
    if (when <= now) return tell(make_error_code(errc::unavailable));
    wait_until(when);
  }
  void tell(error_code ec) {
    env.cancel(std::exchange(timer, 0));
    if (auto told = std::exchange(done, {})) told(ec);
  }
};

namespace {

bool answers(ReleaseStatus status) {
  return status != ReleaseStatus::unavailable && status != ReleaseStatus::unknown;
}

error_code told(ReleaseStatus outcome) {
  switch (outcome) {
    case ReleaseStatus::released:
      return {};
    case ReleaseStatus::refused:
      return make_error_code(errc::access_denied);
    default:
      return make_error_code(errc::lock_lost);
  }
}

}  // namespace

Releaser::Releaser(Env& env, Backend& backend, TaskGroup& tasks)
    : env_(env),
      backend_(backend),
      tasks_(tasks),
      answered_at_(std::make_shared<TimePoint>(TimePoint::min())) {}

void Releaser::start(ClaimPtr claim, ReleaseFsm::Limits limits, Patience patience,
                     TimePoint owed_until, Done done) {
  owed_until_ = std::max(owed_until_, owed_until);
  const auto waiter = detail::make_recycled<Waiter>(env_, answered_at_);
  if (done) {
    const auto now = env_.now();
    waiter->patience = patience;
    waiter->latest = now + patience.longest;
    waiter->wait_until(now + patience.silence);
  }
  waiter->done = std::move(done);
  tasks_.spawn(run(std::move(claim), limits, waiter));
}

// One coroutine, and as a rule one more below it: each costs.
asio::awaitable<void> Releaser::run(ClaimPtr claim, ReleaseFsm::Limits limits,
                                    std::shared_ptr<Waiter> waiter) {
  ReleaseFsm fsm(limits);
  auto step = fsm.begin(env_.now());
  while (step.what != ReleaseFsm::Action::finish) {
    if (step.what == ReleaseFsm::Action::pause) {
      if (mode_ == Mode::hurried && fsm.outcome()) break;
      if (mode_ != Mode::over) co_await pause_until(step.until);
      if (mode_ == Mode::over) break;
      step = fsm.on_pause_over(env_.now());
      continue;
    }
    ReleaseAnswer answer;
    try {
      answer = co_await backend_.release(claim, step.search, step.until);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      answer.status = ReleaseStatus::unknown;
    }
    const auto now = env_.now();
    if (answers(answer.status)) *answered_at_ = now;
    step = fsm.on_answer(answer.status, now);
    if (const auto outcome = fsm.outcome()) waiter->tell(told(*outcome));
  }
  waiter->tell(make_error_code(errc::unavailable));
}

asio::awaitable<void> Releaser::pause_until(TimePoint when) {
  Signal pause(env_);
  const auto place = pauses_.insert(pauses_.end(), &pause);
  co_await pause.wait_until(when);
  pauses_.erase(place);
}

void Releaser::change_to(Mode mode) {
  mode_ = mode;
  for (auto* pause : pauses_) pause->notify();
}

void Releaser::hurry() { change_to(Mode::hurried); }

void Releaser::give_up() { change_to(Mode::over); }

}  // namespace dlock::core

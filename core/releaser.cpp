// SPDX-License-Identifier: Apache-2.0
#include "core/releaser.hpp"

namespace dlock::core {

struct Releaser::Waiter {
  Env& env;
  Done done;
  TimerId timer = 0;

  void tell(error_code ec) {
    env.cancel(std::exchange(timer, 0));
    if (auto told = std::exchange(done, {})) told(ec);
  }
};

namespace {

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

void Releaser::start(ClaimPtr claim, ReleaseFsm::Limits limits, Duration patience, Done done) {
  auto waiter = std::make_shared<Waiter>(Waiter{env_, std::move(done)});
  if (waiter->done) {
    waiter->timer = env_.call_at(env_.now() + patience, [waiter] {
      waiter->timer = 0;
      waiter->tell(make_error_code(errc::unavailable));
    });
  }
  tasks_.spawn(run(std::move(claim), limits, std::move(waiter)));
}

asio::awaitable<void> Releaser::run(ClaimPtr claim, ReleaseFsm::Limits limits,
                                    std::shared_ptr<Waiter> waiter) {
  ReleaseFsm fsm(limits);
  auto step = fsm.begin(env_.now());
  while (step.what != ReleaseFsm::Do::finish) {
    if (step.what == ReleaseFsm::Do::pause) {
      if (mode_ == Mode::hurried && fsm.outcome()) break;
      if (mode_ != Mode::over) co_await pause_until(step.until);
      if (mode_ == Mode::over) break;
      step = fsm.on_pause_over(env_.now());
      continue;
    }
    ReleaseAnswer answer;
    answer.status = ReleaseStatus::unknown;
    try {
      answer = co_await backend_.release(claim, step.search, step.until);
    } catch (const std::exception&) {
      answer.status = ReleaseStatus::unknown;
    }
    step = fsm.on_answer(answer.status, env_.now());
    if (const auto outcome = fsm.outcome()) {
      waiter->tell(told(*outcome));
    }
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

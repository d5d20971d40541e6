// SPDX-License-Identifier: Apache-2.0
#include "core/store/acquisition.hpp"

#include <fmt/format.h>

#include "core/store/hold.hpp"
#include "core/store/store.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core {

namespace {

/// A request may have gone out before that was thrown.
ClaimAnswer not_known(const std::exception& error) {
  ClaimAnswer answer;
  answer.status = ClaimStatus::unknown;
  answer.failure = failure_of(error);
  return answer;
}

}  // namespace

std::string queue_full_words(std::size_t waiting, std::uint32_t most) {
  return fmt::format("{} wait for it already, and max_queue is {}", waiting, most);
}

Acquisition::Acquisition(std::shared_ptr<Store> store, Request request,
                         detail::AcquireHandler handler)
    : store_(std::move(store)),
      request_(std::move(request)),
      caller_(store_->env(), std::move(handler), request_.diagnostics),
      fsm_(request_.limits),
      pause_(store_->env()) {}

// One coroutine, and usually one more below it, because each has a cost. Each awaited result has
// its own place in the frame, and each lock under way has a frame. So one place awaits all answers.
asio::awaitable<void> Acquisition::run() {
  const auto self = shared_from_this();
  try {
    ClaimAnswer answer;
    auto step = begin();
    while (step.what != AcquireFsm::Action::finish) {
      switch (step.what) {
        case AcquireFsm::Action::claim: {
          const bool asks = can_ask();
          auto claimed = asks ? ask() : claim();
          try {
            answer = co_await std::move(claimed);
          } catch (const std::exception& error) {
            if (!asks) throw;
            answer = not_known(error);
          }
          if (asks && answer.status == ClaimStatus::sealed) co_await open(answer);
          step = judge(answer);
          break;
        }
        case AcquireFsm::Action::wait:
          has_waited_ = true;
          co_await wait(step.until);
          step = fsm_.on_woken(store_->env().now(), store_->trouble());
          break;
        case AcquireFsm::Action::pause:
          co_await pause_.wait_until(step.until);
          step = fsm_.on_woken(store_->env().now(), store_->trouble());
          break;
        case AcquireFsm::Action::finish:
          break;
      }
    }
    finish(answer);
  } catch (const std::exception& error) {
    give_up(error);
  }
  caller_.stop_clock();
  store_->forget(*this);
}

AcquireFsm::Step Acquisition::begin() {
  caller_.call_at(request_.limits.deadline, [this] { on_deadline(); });
  return fsm_.begin(store_->env().now());
}

void Acquisition::on_deadline() {
  const auto trouble = store_->trouble();
  const auto until = fsm_.first_answer_until(trouble);
  if (until > store_->env().now()) return caller_.call_at(until, [this] { on_deadline(); });
  interrupt(fsm_.on_deadline(trouble));
}

errc Acquisition::error_at_deadline() const { return fsm_.error_at_deadline(store_->trouble()); }

// The outcome of the request is not known, as after an answer that never arrived.
void Acquisition::give_up(const std::exception& error) {
  const auto why = failure_of(error);
  if (claim_) store_->withdraw(claim_, store_->env().now());
  caller_.fail(why);
}

// Else claim() waits for what is missing, or says why it cannot.
bool Acquisition::can_ask() {
  if (!store_->is_up() || fsm_.given_up()) return false;
  const bool is_admitted =
      request_.permits != 0 || store_->policy_of(request_).is_admitted(request_.name);
  if (!is_admitted || store_->refused_kind(request_).error) return false;
  if (store_->unmet_requirement(request_.require).error) return false;
  refusal_ = {};
  return claim_ || !store_->make_claim(request_, claim_).error;
}

asio::awaitable<ClaimAnswer> Acquisition::claim() {
  ClaimAnswer answer;
  refusal_ = {};
  auto& policy = store_->policy_of(request_);
  ClaimPolicy::Admission admission;
  answer.failure = store_->refused_kind(request_);
  if (answer.failure.error) {
    answer.status = ClaimStatus::failed;
    co_return answer;
  }
  if (store_->is_up()) answer.failure = store_->unmet_requirement(request_.require);
  if (answer.failure.error || !store_->is_up()) {
    answer.failure = co_await store_->ready(request_.require, request_.limits.patience);
  }
  // Plans move locks, and do not concern a semaphore of that name.
  const bool is_lock = request_.permits == 0;
  if (!answer.failure.error && is_lock && !policy.is_admitted(request_.name)) {
    admission = co_await policy.admit(request_.name);
    answer.failure = std::move(admission.failure);
  }
  if (answer.failure.error) {
    answer.status = portable(answer.failure.error) == errc::unavailable ? ClaimStatus::unavailable
                                                                        : ClaimStatus::failed;
    co_return answer;
  }
  if (fsm_.given_up()) co_return answer;  // surely not done
  if (!claim_) {
    answer.failure = store_->make_claim(request_, claim_);
    if (answer.failure.error) {
      answer.status = ClaimStatus::failed;
      co_return answer;
    }
  }
  try {
    answer = co_await ask();
    if (answer.status == ClaimStatus::sealed) co_await open(answer);
    if (admission.is_provisional && answer.status == ClaimStatus::granted) {
      answer = co_await confirm(std::move(answer));
    }
  } catch (const std::exception& error) {
    answer = not_known(error);
  }
  co_return answer;
}

asio::awaitable<ClaimAnswer> Acquisition::ask() {
  // Connecting has its own patience (connect_timeout); the request's begins here.
  return store_->backend().claim(claim_, store_->env().now() + store_->request_timeout());
}

asio::awaitable<void> Acquisition::open(ClaimAnswer& answer) {
  try {
    const bool is_open = co_await store_->policy_of(request_).open(request_.name, answer.record);
    // This claim may be queued behind the record, where the store has not compared its gate.
    if (is_open) answer = co_await claim_anew();
  } catch (const std::exception& error) {
    answer = not_known(error);
  }
}

asio::awaitable<ClaimAnswer> Acquisition::confirm(ClaimAnswer granted) {
  const auto confirmed = co_await store_->policy_of(request_).confirm(request_.name, granted.token);
  if (confirmed.failure.error && portable(confirmed.failure.error) == errc::unavailable) {
    granted.status = ClaimStatus::unknown;
    granted.failure = confirmed.failure;
    co_return granted;
  }
  refusal_ = confirmed.failure;
  if (refusal_.error || !confirmed.is_stale) co_return granted;
  granted = co_await claim_anew();
  co_return granted;
}

asio::awaitable<ClaimAnswer> Acquisition::claim_anew() {
  ClaimAnswer answer;
  auto until = store_->env().now() + store_->request_timeout();
  const auto gone = co_await store_->backend().release(claim_, false, until);
  const bool is_gone =
      gone.status == ReleaseStatus::released || gone.status == ReleaseStatus::not_holder;
  if (!is_gone) store_->withdraw(claim_, store_->env().now());
  claim_.reset();
  answer.failure = store_->make_claim(request_, claim_);
  if (answer.failure.error) {
    answer.status = ClaimStatus::failed;
    co_return answer;
  }
  until = store_->env().now() + store_->request_timeout();
  answer = co_await store_->backend().claim(claim_, until);
  co_return answer;
}

asio::awaitable<void> Acquisition::wait(TimePoint until) {
  bool broken = false;
  try {
    co_await store_->backend().wait(claim_, until);
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    broken = true;
  }
  // A wait that fails must not become a busy loop of claims.
  if (broken) co_await pause_.wait_until(store_->env().now() + std::chrono::milliseconds(100));
}

AcquireFsm::Step Acquisition::judge(ClaimAnswer& answer) {
  auto& env = store_->env();
  if (answer.status == ClaimStatus::sealed) {
    record_ = answer.record;
    answer.failure = store_->policy_of(request_).sealed(record_, request_.name);
  }
  if (answer.status == ClaimStatus::gate_changed) {
    gate_ = answer.record;
    answer.failure = make_failure(errc::moving, "the gate of its plan has turned");
  }
  // Only the first known place counts: waiters that give up move the others up.
  if (answer.status == ClaimStatus::waiting && answer.waiting_before &&
      !std::exchange(has_place_, true) && request_.max_queue &&
      *answer.waiting_before >= *request_.max_queue) {
    return fsm_.on_refused_grant(make_failure(
        errc::queue_full, queue_full_words(*answer.waiting_before, *request_.max_queue)));
  }
  const bool good = usable(answer);
  if (good && refusal_.error) return fsm_.on_refused_grant(std::exchange(refusal_, {}));
  if (good && answer.token) {
    auto refused = store_->refused_token(request_, *answer.token);
    if (refused.error) return fsm_.on_refused_grant(std::move(refused));
  }
  return fsm_.on_answer(answer, good, env.now(), env.random());
}

bool Acquisition::usable(const ClaimAnswer& answer) const {
  return answer.status == ClaimStatus::granted &&
         local_deadline(answer.validity, store_->margin(request_)) > store_->env().now();
}

void Acquisition::interrupt(bool tell_now) {
  if (tell_now) tell_error();
  pause_.notify();
  if (claim_) store_->backend().interrupt(*claim_);
}

void Acquisition::finish(const ClaimAnswer& last) {
  if (fsm_.granted()) return caller_.give(LockHandle(store_->hold(claim_, last, request_)));
  if (claim_ && fsm_.must_withdraw()) store_->withdraw(claim_, fsm_.last_unknown());
  tell_error();
}

Failure Acquisition::failure() const {
  auto failure = fsm_.failure();
  const bool is_silence = fsm_.given_up() && fsm_.error() == errc::unavailable;
  if (is_silence && failure.text.empty()) failure.text = store_->no_answer_words();
  return failure;
}

void Acquisition::tell_error() {
  if (caller_.is_told()) return;
  auto text = failure().text;
  if (text.empty() && fsm_.error() == errc::timed_out) text = store_->holder_words(request_);
  caller_.refuse(fsm_.error(), fsm_.failure(), request_.name, store_->name(), std::move(text));
}

}  // namespace dlock::core

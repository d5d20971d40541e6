// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_handle.hpp"

#include "core/loop/reply.hpp"
#include "core/store/hold.hpp"
#include "core/store/host.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::inline v0 {
namespace {

/// Never destroyed: handles of static storage may ask after that.
const std::string& no_name() {
  static const auto* const name = new std::string();
  return *name;
}

/// After the release has begun: no callback of it runs any more when this returns.
void wait_quiet(const std::shared_ptr<core::Hold>& hold) noexcept {
  if (hold && !hold->is_foreign()) hold->wait_quiet();
}

}  // namespace

LockHandle::LockHandle() noexcept = default;
LockHandle::LockHandle(std::shared_ptr<core::Hold> hold) noexcept : hold_(std::move(hold)) {}
LockHandle::LockHandle(LockHandle&&) noexcept = default;

LockHandle& LockHandle::operator=(LockHandle&& other) noexcept {
  if (this != &other) {
    const NoCancellation uncancelled;
    const auto hold = hold_;
    begin_release({});
    hold_ = std::move(other.hold_);
    wait_quiet(hold);
  }
  return *this;
}

LockHandle::~LockHandle() {
  if (!hold_) return;
  const NoCancellation uncancelled;
  const auto hold = hold_;
  begin_release({});
  wait_quiet(hold);
}

const std::string& LockHandle::name() const noexcept {
  return hold_ ? hold_->identity().name : no_name();
}

const std::string& LockHandle::store() const noexcept {
  return hold_ ? hold_->identity().store : no_name();
}

std::optional<std::uint64_t> LockHandle::token() const noexcept {
  return hold_ ? hold_->identity().token : std::nullopt;
}

std::optional<Sequencer> LockHandle::sequencer() const {
  const auto token_of_grant = token();
  if (!token_of_grant) return std::nullopt;
  return Sequencer(name(), hold_->identity().mode, *token_of_grant, store());
}

HandleState LockHandle::state() const noexcept {
  return hold_ ? hold_->state() : HandleState::released;
}

LossReason LockHandle::loss_reason() const noexcept {
  return hold_ && hold_->state() == HandleState::lost ? hold_->reason() : LossReason::none;
}

std::optional<std::chrono::nanoseconds> LockHandle::remaining() const noexcept {
  return hold_ ? hold_->remaining() : Duration::zero();
}

void LockHandle::check() const {
  error_code ec;
  check(ec);
  if (ec) throw LockError(ec, {name(), store(), to_string(loss_reason())});
}

void LockHandle::check(error_code& ec) const noexcept {
  const auto now = state();
  const bool ours = now == HandleState::held || now == HandleState::suspect;
  ec = ours ? error_code{} : make_error_code(errc::lock_lost);
}

std::stop_token LockHandle::stop_token() const noexcept {
  return hold_ ? hold_->stop_token() : std::stop_token();
}

void LockHandle::on_state(StateCallback callback) {
  if (hold_) hold_->on_state(std::move(callback));
}

error_code LockHandle::release() noexcept {
  const NoCancellation uncancelled;
  const auto hold = hold_;
  auto ec = make_error_code(errc::unavailable);
  try {
    auto reply = std::make_shared<core::Reply<error_code>>();
    detail::UniqueFunction<void(error_code)> done = [reply](error_code told) { reply->set(told); };
    begin_release(std::move(done));
    ec = reply->wait();
  } catch (const std::bad_alloc&) {
    // It goes on in the background; nothing is left to tell its outcome with.
    begin_release({});
  }
  wait_quiet(hold);
  return ec;
}

void LockHandle::start_release(detail::UniqueFunction<void(error_code)> done) noexcept {
  const auto hold = hold_;
  // Inside a callback of its own the caller may well wait for `done`.
  if (!done || !hold || hold->is_foreign() || hold->is_telling_here()) {
    return begin_release(std::move(done));
  }
  begin_release([hold, done = std::move(done)](error_code ec) mutable {
    hold->when_quiet([done = std::move(done), ec]() mutable { done(ec); });
  });
}

void LockHandle::begin_release(detail::UniqueFunction<void(error_code)> done) noexcept {
  const auto hold = std::exchange(hold_, nullptr);
  if (!hold) {
    if (done) done({});
    return;
  }
  if (hold->is_foreign()) {
    if (done) done(make_error_code(errc::closed));
    return;
  }
  // What was lost has been taken care of when it was; nothing is left to give back.
  const bool was_ours = hold->give_back();
  hold->leave();
  if (!was_ours) {
    hold->let_go();
    if (done) done(make_error_code(errc::lock_lost));
    return;
  }
  hold->host().release(hold, std::move(done));
}

}  // namespace dlock::inline v0

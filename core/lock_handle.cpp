// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_handle.hpp"

#include "core/hold.hpp"
#include "core/host.hpp"
#include "core/planted.hpp"
#include "core/reply.hpp"

namespace dlock::inline v0 {
namespace {

const std::string kNoName;

}  // namespace

LockHandle::LockHandle() noexcept = default;
LockHandle::LockHandle(std::shared_ptr<core::Hold> hold) noexcept : hold_(std::move(hold)) {}
LockHandle::LockHandle(LockHandle&&) noexcept = default;

LockHandle& LockHandle::operator=(LockHandle&& other) noexcept {
  if (this != &other) {
    start_release({});
    hold_ = std::move(other.hold_);
  }
  return *this;
}

LockHandle::~LockHandle() {
  if (DLOCK_PLANTED("core_dropped_handle_is_forgotten")) return;
  start_release({});
}

const std::string& LockHandle::name() const noexcept {
  return hold_ ? hold_->identity().name : kNoName;
}

const std::string& LockHandle::store() const noexcept {
  return hold_ ? hold_->identity().store : kNoName;
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
  auto reply = std::make_shared<core::Reply<error_code>>();
  start_release([reply](error_code ec) { reply->set(ec); });
  return reply->wait();
}

void LockHandle::start_release(detail::UniqueFunction<void(error_code)> done) noexcept {
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
  if (!hold->give_back()) {
    hold->let_go();
    if (done) done(make_error_code(errc::lock_lost));
    return;
  }
  hold->host().release(hold, std::move(done));
}

}  // namespace dlock::inline v0

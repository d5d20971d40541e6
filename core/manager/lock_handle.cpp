// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_handle.hpp"

#include <new>

#include "core/loop/completions.hpp"
#include "core/loop/reply.hpp"
#include "core/manager/multi_grant.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::inline v0 {

void detail::Grant::post_callback(UniqueFunction<void()> job) {
  core::Completions::alone()->post(std::move(job));
}

void detail::Grant::downgrade(Done done) { done(make_error_code(errc::not_supported)); }

void detail::Grant::export_grant(std::chrono::milliseconds, Exported done) {
  done(make_error_code(errc::not_supported),
       "only one lock of a store's can change its process: no several at once, and no fake");
}

namespace {

/// Never destroyed: handles of static storage may ask after that.
const std::string& no_name() {
  alignas(std::string) static unsigned char place[sizeof(std::string)];
  static const auto* const name = ::new (place) std::string();
  return *name;
}

void add_sequencers(const detail::Grant& grant, std::vector<Sequencer>& all) {
  if (const auto* const several = dynamic_cast<const core::MultiGrant*>(&grant)) {
    for (const auto& part : several->parts()) add_sequencers(*part, all);
    return;
  }
  const auto& of = grant.identity();
  if (of.token && of.permits == 0) all.emplace_back(of.name, of.mode, *of.token, of.store);
}

void let_go(detail::Grant& grant) noexcept {
  core::Driving::Intent intent;
  grant.release({});
  intent.push();
}

}  // namespace

LockHandle::LockHandle() noexcept = default;
LockHandle::LockHandle(std::shared_ptr<detail::Grant> grant) noexcept : grant_(std::move(grant)) {}
LockHandle::LockHandle(LockHandle&&) noexcept = default;

LockHandle& LockHandle::operator=(LockHandle&& other) noexcept {
  if (this != &other) {
    const NoCancellation uncancelled;
    const auto replaced = std::exchange(grant_, nullptr);
    if (replaced) let_go(*replaced);
    grant_ = std::move(other.grant_);
    if (replaced) replaced->wait_quiet();
  }
  return *this;
}

LockHandle::~LockHandle() {
  if (!grant_) return;
  const NoCancellation uncancelled;
  let_go(*grant_);
  grant_->wait_quiet();
}

const std::string& LockHandle::name() const noexcept {
  return grant_ ? grant_->identity().name : no_name();
}

const std::string& LockHandle::store() const noexcept {
  return grant_ ? grant_->identity().store : no_name();
}

Mode LockHandle::mode() const noexcept {
  return grant_ ? grant_->identity().mode : Mode::exclusive;
}

std::uint32_t LockHandle::permits() const noexcept {
  return grant_ ? grant_->identity().permits : 0;
}

std::optional<std::uint64_t> LockHandle::token() const noexcept {
  return grant_ ? grant_->identity().token : std::nullopt;
}

std::optional<Sequencer> LockHandle::sequencer() const {
  const auto token_of_grant = token();
  if (!token_of_grant || permits() != 0) return std::nullopt;
  return Sequencer(name(), grant_->identity().mode, *token_of_grant, store());
}

std::vector<Sequencer> LockHandle::sequencers() const {
  std::vector<Sequencer> all;
  if (grant_) add_sequencers(*grant_, all);
  return all;
}

HandleState LockHandle::state() const noexcept {
  return grant_ ? grant_->state() : HandleState::released;
}

LossReason LockHandle::loss_reason() const noexcept {
  return grant_ && grant_->state() == HandleState::lost ? grant_->reason() : LossReason::none;
}

std::string LockHandle::broken_by() const {
  return loss_reason() == LossReason::broken ? grant_->broken_by() : std::string();
}

std::optional<std::chrono::nanoseconds> LockHandle::remaining() const noexcept {
  return grant_ ? grant_->remaining() : Duration::zero();
}

void LockHandle::check() const {
  error_code ec;
  check(ec);
  if (!ec) return;
  const auto* const several = dynamic_cast<const core::MultiGrant*>(grant_.get());
  const auto* const lost = several != nullptr ? several->lost_part() : nullptr;
  if (lost == nullptr) throw LockError(ec, {name(), store(), to_string(loss_reason())});
  throw LockError(ec, {lost->identity().name, lost->identity().store, to_string(lost->reason())});
}

void LockHandle::check(error_code& ec) const noexcept {
  const auto now = state();
  const bool ours = now == HandleState::held || now == HandleState::suspect;
  ec = ours ? error_code{} : make_error_code(errc::lock_lost);
}

std::stop_token LockHandle::stop_token() const noexcept {
  return grant_ ? grant_->stop_token() : std::stop_token();
}

void LockHandle::on_state(StateCallback callback) {
  if (grant_) grant_->on_state(std::move(callback));
}

void LockHandle::on_contended(ContendedCallback callback) {
  if (grant_) grant_->on_contended(std::move(callback));
}

void LockHandle::on_revoke(RevokeCallback callback) {
  if (grant_) grant_->on_revoke(std::move(callback));
}

void LockHandle::progress() noexcept {
  if (grant_) grant_->progress();
}

error_code LockHandle::release() noexcept {
  const NoCancellation uncancelled;
  const auto grant = std::exchange(grant_, nullptr);
  if (!grant) return {};
  const auto ec = or_end([&grant] {
    const auto reply = detail::make_recycled<core::Reply<error_code>>();
    core::Driving::Intent intent;
    grant->release([reply](error_code told) { reply->set(told); });
    return reply->wait(intent);
  });
  grant->wait_quiet();
  return ec;
}

error_code LockHandle::downgrade() noexcept {
  if (!grant_) return make_error_code(errc::lock_lost);
  const NoCancellation uncancelled;
  try {
    auto reply = std::make_shared<core::Reply<error_code>>();
    core::Driving::Intent intent;
    grant_->downgrade([reply](error_code told) { reply->set(told); });
    return reply->wait(intent);
  } catch (const std::bad_alloc&) {
    return make_error_code(errc::not_supported);  // nothing has begun
  }
}

std::string LockHandle::export_grant(ExportOptions options, error_code& ec) noexcept {
  const NoCancellation uncancelled;
  using Told = std::pair<error_code, std::string>;
  try {
    Told told{make_error_code(errc::lock_lost), {}};
    if (grant_) {
      auto reply = std::make_shared<core::Reply<Told>>();
      core::Driving::Intent intent;
      grant_->export_grant(options.within, [reply](error_code result, std::string text) {
        reply->set({result, std::move(text)});
      });
      told = reply->wait(intent);
    }
    ec = told.first;
    if (!ec) {
      std::exchange(grant_, nullptr)->end_export();
      return std::move(told.second);
    }
    if (options.diagnostics != nullptr) *options.diagnostics = {name(), store(), told.second};
  } catch (const std::bad_alloc&) {
    ec = make_error_code(errc::unavailable);  // nothing has begun
  }
  return {};
}

std::string LockHandle::export_grant(ExportOptions options) {
  Diagnostics diagnostics;
  auto* const wanted = std::exchange(options.diagnostics, &diagnostics);
  error_code ec;
  auto text = export_grant(options, ec);
  if (wanted != nullptr) *wanted = diagnostics;
  if (ec) throw LockError(ec, std::move(diagnostics));
  return text;
}

void LockHandle::start_release(detail::UniqueFunction<void(error_code)> done) {
  const auto grant = std::exchange(grant_, nullptr);
  if (grant) return grant->release_quietly(std::move(done));
  if (done) done({});
}

void LockHandle::start_downgrade(detail::UniqueFunction<void(error_code)> done) {
  if (grant_) return grant_->downgrade(std::move(done));
  if (done) done(make_error_code(errc::lock_lost));
}

}  // namespace dlock::inline v0

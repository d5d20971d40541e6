// SPDX-License-Identifier: Apache-2.0
//
// MultiGrant: the grants of several locks as one. It is as good as the worst of them, and tells
// what becomes of it on the threads on which they tell: whoever comes first tells for those who
// come meanwhile, so that its callbacks run one at a time. Knows no store.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/store/notifier.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/detail/unique_function.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

/// Thread safety: all members from any thread, when it has been gathered.
class MultiGrant final : public detail::Grant, public std::enable_shared_from_this<MultiGrant> {
 public:
  /// Of that many. `one_loop`: the same loop answers for them all.
  MultiGrant(std::string name, std::size_t size, bool one_loop, Mode mode);

  // While it is gathered, one call after the other.
  /// Takes it over; nothing is taken if it throws.
  void add(LockHandle& part);
  /// The first one that is lost; null: none.
  const detail::Grant* lost_part() const noexcept;

  const std::vector<std::shared_ptr<detail::Grant>>& parts() const noexcept { return parts_; }

  const Identity& identity() const noexcept override { return identity_; }
  /// Lost if one is, else suspect if one is.
  HandleState state() noexcept override;
  /// Of the loss that was seen first.
  LossReason reason() const noexcept override { return reason_.load(std::memory_order_acquire); }
  std::string broken_by() override;
  /// The smallest.
  std::optional<std::chrono::nanoseconds> remaining() noexcept override;
  std::stop_token stop_token() const noexcept override;
  void on_state(StateCallback callback) override;
  /// Told once, by the first lock of them that somebody else asks for.
  void on_contended(ContendedCallback callback) override;
  /// Told each time that one of them is asked for.
  void on_revoke(RevokeCallback callback) override;
  void progress() noexcept override;
  void renew_within(std::chrono::nanoseconds time) override;
  void hand_to_mutex() noexcept override;
  /// All of them, the last one first, without a wait in between. `done` is told when all have
  /// answered: lock_lost if one was lost, else the first error.
  void release(Done done) noexcept override;
  void release_quietly(Done done) noexcept override {
    notifier_.release_quietly(shared_from_this(), std::move(done));
  }
  void wait_quiet() noexcept override { notifier_.wait_quiet(); }
  void post_callback(detail::UniqueFunction<void()> job) override {
    parts_.front()->post_callback(std::move(job));
  }

 private:
  void note(LossReason reason) noexcept;
  void on_part(std::size_t at, HandleState state, LossReason reason);
  void tell();
  void on_released(error_code ec);
  void see_to_stop();

  Identity identity_;
  const bool one_loop_;
  std::vector<std::shared_ptr<detail::Grant>> parts_;
  std::atomic<LossReason> reason_{LossReason::none};
  std::atomic<bool> hears_askings_{false};

  Notifier notifier_;
  // Its lock guards:
  std::vector<HandleState> said_;  ///< by each part
  Done released_;
  std::size_t unanswered_ = 0;
  error_code result_;
};

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// The watchdog of one store: keeps its held locks renewed, and reports when one is no longer valid.
// One timer, whatever the number of locks. All renewals that are due are one batch; with a session
// lease all locks are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/fsm/lease_fsm.hpp"
#include "core/loop/task_group.hpp"
#include "core/store/hold.hpp"
#include "dlock/detail/recycled.hpp"

namespace dlock::core {

/// Loop only.
class Renewer : public std::enable_shared_from_this<Renewer> {
 public:
  struct Limits {
    LeaseScope scope = LeaseScope::claim;
    Duration request_timeout{};
    Duration drift_margin{};
    Duration lease{};
  };
  /// A hold was lost, the user was notified, and part of its claim may still be in the store.
  using OnLeftBehind = std::function<void(const ClaimPtr&)>;
  /// A hold was lost because an operator has marked its record. The record is still in the store.
  using OnBroken = std::function<void(const std::shared_ptr<Hold>&, const ClaimPtr&)>;

  Renewer(Env& env, Backend& backend, TaskGroup& tasks, OnLeftBehind on_left_behind,
          OnBroken on_broken);
  ~Renewer();

  void add(const std::shared_ptr<Hold>& hold, const ClaimPtr& claim, const Validity& validity,
           const Limits& limits);

  struct Removed {
    ClaimPtr claim;  ///< null if it was lost or given back before
    /// How long the store may keep it, if a renewal that it never answered was the last that it
    /// got.
    TimePoint until = kNever;
  };
  /// Ends the renewals and reports of the hold.
  Removed remove(const Hold& hold);
  /// The holder stops its work this long after a confirmation.
  void renew_within(const Hold& hold, Duration time);
  std::vector<std::shared_ptr<Hold>> holds() const;
  /// Returns the hold of that claim; null: it was lost or released.
  std::shared_ptr<Hold> find(const Claim& claim) const;
  std::shared_ptr<Hold> first() const noexcept {
    return entries_.empty() ? nullptr : entries_.begin()->second.hold;
  }
  void stop();

  /// `at_deadline`: the reason of the losses, if it stays down.
  void on_link_down(LossReason at_deadline = LossReason::expired);
  void on_link_up();
  void on_session_gone(LossReason why);
  void on_claim_gone(const Claim& claim, LossReason why);
  /// `by`: as LockHandle::broken_by().
  void on_claim_broken(const Claim& claim, const std::string& by);

 private:
  struct Entry {
    std::shared_ptr<Hold> hold;
    ClaimPtr claim;
    LeaseFsm lease;
    Limits limits;
    TimePoint due = kNever;      ///< its place in due_
    TimePoint asked_until = {};  ///< the latest end of the last renewal that was sent
  };
  /// By the claims' numbers.
  using Entries = std::map<std::uint64_t, Entry, std::less<>,
                           detail::Recycled<std::pair<const std::uint64_t, Entry>>>;
  using Place = std::pair<TimePoint, std::uint64_t>;

  void apply(Entry& entry, LeaseFsm::Change change);
  static TimePoint next_moment(const Entry& entry) noexcept;
  void schedule(Entry& entry) noexcept;
  void arm();
  void on_timer();
  void expire_overdue(TimePoint now);
  void renew_due(TimePoint now);
  std::vector<ClaimPtr> take_due(TimePoint now);
  asio::awaitable<void> renew(std::vector<ClaimPtr> claims, TimePoint deadline);
  void on_answer(Entry& entry, const ExtendAnswer& answer, TimePoint now);
  template <class Event>
  void for_each(Event event);

  Env& env_;
  Backend& backend_;
  TaskGroup& tasks_;
  OnLeftBehind on_left_behind_;
  OnBroken on_broken_;
  Entries entries_;
  std::set<Place, std::less<>, detail::Recycled<Place>>
      due_;  ///< one for each entry, also at kNever
  TimerId timer_ = 0;
  TimePoint armed_ = kNever;
};

}  // namespace dlock::core

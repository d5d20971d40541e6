// SPDX-License-Identifier: Apache-2.0
//
// Registration: one registration of this program with a plan in mode dual, as what rests on it sees
// it. When it is over it stays so: the next registration is another registration.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core::migration {

/// Told on the loop, once, when a registration that it rests on is over.
class Dependent {
 public:
  virtual ~Dependent() = default;
  virtual void on_registration_over(LossReason why) = 0;
};

/// until() from any thread; all else on the loop.
class Registration {
 public:
  Registration(std::string program, std::string plan_id, TimePoint until, std::uint64_t floor)
      : program_(std::move(program)),
        plan_id_(std::move(plan_id)),
        until_(until.time_since_epoch().count()),
        floor_(floor) {}

  /// Until when this program may believe that it is registered; TimePoint::min() when over.
  TimePoint until() const noexcept {
    return TimePoint(Duration(until_.load(std::memory_order_acquire)));
  }
  bool is_over(TimePoint now) const noexcept { return until() <= now; }
  /// What until() said last before it was over.
  TimePoint promised() const noexcept { return over_ ? promised_ : until(); }

  const std::string& program() const noexcept { return program_; }
  const std::string& plan_id() const noexcept { return plan_id_; }
  /// Tokens are above it, by the window as it was last seen.
  std::uint64_t floor() const noexcept { return floor_; }
  void raise_floor(std::uint64_t floor) { floor_ = floor > floor_ ? floor : floor_; }

  void extend(TimePoint until) noexcept;
  /// Tells all that depend on it. Harmless when it is over.
  void end(LossReason why);
  void add(std::weak_ptr<Dependent> dependent);

 private:
  const std::string program_;
  const std::string plan_id_;
  std::atomic<TimePoint::rep> until_;
  std::uint64_t floor_;
  bool over_ = false;
  TimePoint promised_ = TimePoint::min();
  std::vector<std::weak_ptr<Dependent>> dependents_;
  std::size_t sweep_at_ = 64;  ///< so many: those that have ended are taken out first
};

}  // namespace dlock::core::migration

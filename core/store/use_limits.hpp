// SPDX-License-Identifier: Apache-2.0
//
// UseLimits: ends the holds of one store whose bounded use is over (UseBound). The order is that of
// LockManager::close(): the loss is reported, the hold is renewed until its user stops, then it is
// released. One timer, whatever their number; progress changes a time and no timer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/store/hold.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

/// Loop only.
class UseLimits : public std::enable_shared_from_this<UseLimits> {
 public:
  /// The hold is lost, the user was notified, and the claim is to be released. `is_left`: no thread
  /// works under it any more, as far as that can be known.
  using GiveBack = std::function<void(const std::shared_ptr<Hold>&, bool is_left)>;

  /// `patience`: longest wait for a user that was notified.
  UseLimits(Env& env, Duration patience, GiveBack give_back);
  ~UseLimits();
  UseLimits(const UseLimits&) = delete;
  UseLimits& operator=(const UseLimits&) = delete;

  /// A bounded one, which a user has.
  void add(const std::shared_ptr<Hold>& hold);
  void stop() noexcept;

 private:
  struct Use {
    std::weak_ptr<Hold> hold;
    std::uint64_t number = 0;
  };
  using Uses = std::multimap<TimePoint, Use>;

  void forget_ended();
  void arm();
  void on_timer();
  void look(Uses::node_type use, TimePoint now);
  void end(const std::shared_ptr<Hold>& hold, std::uint64_t number);
  void give_back(std::uint64_t number, bool is_left);

  Env& env_;
  const Duration patience_;
  const GiveBack give_back_;
  Uses uses_;                                              ///< by the time of their next check
  std::map<std::uint64_t, std::shared_ptr<Hold>> ending_;  ///< notified, and not yet released
  std::uint64_t last_number_ = 0;
  std::size_t most_ = 64;  ///< then those that have ended are forgotten
  TimerId timer_ = 0;
  TimePoint armed_ = kNever;
};

}  // namespace dlock::core

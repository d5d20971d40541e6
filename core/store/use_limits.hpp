// SPDX-License-Identifier: Apache-2.0
//
// UseLimits: ends the holds of one store whose bounded use is over (UseBound). One order, as at the
// end of a manager: told that it is lost, waited for while it is renewed, then given back. One
// timer, whatever their number; who makes progress moves a moment and no timer.
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
  /// Is lost, has been told, and is to be given back. `is_left`: nobody works under it any more, as
  /// far as that can be known.
  using GiveBack = std::function<void(const std::shared_ptr<Hold>&, bool is_left)>;

  /// `patience`: how long is waited at most for who has been told.
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
  Uses uses_;                                              ///< by the moment to look at them
  std::map<std::uint64_t, std::shared_ptr<Hold>> ending_;  ///< told, and not yet given back
  std::uint64_t last_number_ = 0;
  std::size_t most_ = 64;  ///< then those that have ended are forgotten
  TimerId timer_ = 0;
  TimePoint armed_ = kNever;
};

}  // namespace dlock::core

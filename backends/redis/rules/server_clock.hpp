// SPDX-License-Identifier: Apache-2.0
//
// The server's clock as the process sees it: for the deadline of a request that the server may
// execute after its client has gone. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "dlock/clock.hpp"

namespace dlock::redis {

class ServerClock {
 public:
  /// `reading`: server time in us. `asked`: before the request was sent.
  void learn(std::uint64_t reading, TimePoint asked) noexcept { known_ = {reading, asked}; }
  /// Returns the server time in us at `when`; late by the round trip of the reading at most.
  /// Returns kNoLimit if the clock is unknown.
  std::uint64_t at(TimePoint when) const noexcept;

  static constexpr std::uint64_t kNoLimit = 9'223'372'036'854'775'807;

 private:
  struct Reading {
    std::uint64_t us;
    TimePoint asked;
  };
  std::optional<Reading> known_;
};

}  // namespace dlock::redis

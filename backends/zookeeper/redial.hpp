// SPDX-License-Identifier: Apache-2.0
//
// How often a server is tried: at once and quickly after a link that was good, so that a moment's
// failure costs no lock; over time never more than once in 1.6 s for each server, whatever the
// servers answer or do not (a link that is made and lost again at once is a try like any other).
// Pure.
#pragma once

#include <cstddef>

#include "dlock/clock.hpp"

namespace dlock::zookeeper {

class Redial {
 public:
  /// `session`: its timeout; `least`: at least that between two rounds.
  Redial(Duration session, std::size_t servers, TimePoint now, Duration least = {});

  /// The link, or the first one, is missing since now.
  void missing(TimePoint now) noexcept;
  /// A server is being tried.
  void tried(TimePoint now) noexcept;
  void servers(std::size_t count) noexcept { servers_ = count; }

  /// When the next server may be tried.
  TimePoint next() const noexcept;

 private:
  Duration cost() const noexcept;

  Duration longest_;
  Duration least_;
  std::size_t servers_;
  std::size_t tries_ = 0;  ///< since the link is missing
  TimePoint missing_;
  TimePoint last_{};
  TimePoint spent_;  ///< until when the tries so far would have lasted at one in 1.6 s
};

}  // namespace dlock::zookeeper

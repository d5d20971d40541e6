// SPDX-License-Identifier: Apache-2.0
//
// How often a server is tried: at once and quickly after a link that was good, so that a moment's
// failure costs no lock; over time never more than once in 1.6 s for each server, whatever the
// servers answer or do not (a link that is made and lost again at once is a try like any other, and
// so is one for another session). Pure.
#pragma once

#include <cstddef>
#include <memory>

#include "dlock/clock.hpp"

namespace dlock::zookeeper {

class Redial {
 public:
  /// Until when all tries so far would have lasted at one in 1.6 s.
  using Spent = std::shared_ptr<TimePoint>;

  /// `session`: its timeout; `least`: at least that between two rounds; `spent`: shared by all that
  /// try the same servers, so that a new one has no quick tries of its own; null: nobody else does.
  Redial(Duration session, std::size_t servers, TimePoint now, Duration least = {},
         Spent spent = {});

  /// The link, or the first one, is missing since now.
  void missing(TimePoint now) noexcept;
  /// A server is being tried.
  void tried(TimePoint now) noexcept;
  void servers(std::size_t count) noexcept { servers_ = count; }

  /// When the next server may be tried. The very first try may come at once, and counts.
  TimePoint next() const noexcept;

 private:
  Duration cost() const noexcept;

  Duration longest_;
  Duration least_;
  std::size_t servers_;
  std::size_t tries_ = 0;  ///< since the link is missing
  TimePoint missing_;
  TimePoint last_{};
  Spent spent_;
};

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// Decides how often a server is tried. After a good link the tries are quick, so that a short
// failure costs no lock. In the long run each server is tried at most once in 1.6 s, whatever the
// servers answer. A link that is made and lost at once counts as a try, and so does one for another
// session. Pure.
#pragma once

#include <cstddef>
#include <memory>

#include "dlock/clock.hpp"

namespace dlock::zookeeper {

class Redial {
 public:
  /// The end of all tries so far, if each had lasted 1.6 s.
  using Spent = std::shared_ptr<TimePoint>;

  /// `session`: its timeout. `least`: the shortest time between two rounds. `spent`: shared by all
  /// that try the same servers, so that a new one has no additional quick tries. Null: no other
  /// tries them.
  Redial(Duration session, std::size_t servers, TimePoint now, Duration least = {},
         Spent spent = {});

  /// The link, or the first one, is missing from now on.
  void missing(TimePoint now) noexcept;
  /// A server is being tried.
  void tried(TimePoint now) noexcept;
  void servers(std::size_t count) noexcept { servers_ = count; }

  /// Returns when the next server may be tried. The first try may be made at once, and counts.
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

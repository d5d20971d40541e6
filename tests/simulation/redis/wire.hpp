// SPDX-License-Identifier: Apache-2.0
//
// Wire: one direction of a TCP connection. What is sent arrives in order, however long each piece
// takes; while the network is cut it is sent again and again; once silent, nothing arrives any
// more and nobody is told.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "tests/simulation/world.hpp"

namespace dlock::simulation::redis {

class Wire final : public std::enable_shared_from_this<Wire> {
 public:
  /// `is_cut`: nothing gets through at the moment.
  Wire(World& world, std::function<bool()> is_cut) : world_(world), is_cut_(std::move(is_cut)) {}

  /// `arrive` runs when it has travelled, after everything that was sent before.
  void send(Duration travels, Job arrive);
  /// What is sent from now on is lost.
  void fall_silent() noexcept { silent_ = true; }
  bool is_silent() const noexcept { return silent_; }
  /// What is on its way is lost too.
  void drop() noexcept {
    silent_ = true;
    on_its_way_.clear();
  }

 private:
  struct Piece {
    TimePoint due;
    Job arrive;
  };
  void expect_head(TimePoint when);
  void on_due();

  World& world_;
  std::function<bool()> is_cut_;
  std::deque<Piece> on_its_way_;
  bool expecting_ = false;
  bool silent_ = false;
};

}  // namespace dlock::simulation::redis

// SPDX-License-Identifier: Apache-2.0
//
// Leg: a plan that governs patterns in a run: from where to where it leads, the aims that its
// operators have one after the other, and what the stores say of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "migration/gate.hpp"
#include "migration/ledger.hpp"
#include "tests/simulation/migration/gate_operator.hpp"

namespace dlock::simulation::migration {

using core::migration::kPlansIn;
using core::migration::kPlansOut;

/// Whether that list names the plan as one that was started.
inline bool lists(const Server& server, std::string_view list, const std::string& plan) {
  const auto entries =
      core::migration::parse_list(server.note(std::string(list)).value_or(std::string())).value();
  return core::migration::lists_started(entries, plan);
}

/// A store, as configurations call it.
struct Stop {
  std::string name;
  Server& server;
};

/// A plan, the fleet that takes part in it, and where it goes.
struct Leg {
  Leg(std::string name, std::vector<std::string> patterns, const Stop& source, const Stop& target)
      : from(source.server), to(target.server) {
    auto& plan = fleet.plan;
    plan.name = std::move(name);
    plan.from = source.name;
    plan.to = target.name;
    plan.max_lease = kLease;
    plan.lossy_target = to.is_lossy();
    plan.patterns = std::move(patterns);
    orders.plan = plan;
  }
  Aim aim() const { return orders.aim; }
  bool is_listed() const {
    return lists(from, kPlansOut, orders.plan.name) && lists(to, kPlansIn, orders.plan.name);
  }
  bool is_listed_anywhere() const {
    return lists(from, kPlansOut, orders.plan.name) || lists(to, kPlansIn, orders.plan.name);
  }
  bool is_finished() const {
    return to.note(core::migration::home_key(orders.plan.name)) && !is_listed_anywhere();
  }
  std::optional<core::migration::Gate> gate() const {
    const auto text = from.note(core::migration::gate_key(orders.plan.name));
    return text ? core::migration::parse_gate(*text) : std::nullopt;
  }

  Fleet fleet;
  Orders orders;
  Server& from;
  Server& to;
  std::vector<Aim> stages;
  std::size_t stage = 0;
  TimePoint stage_until{};
  bool over = false;
  bool superseded = false;         ///< by a later plan of the same locks
  bool has_guests = false;         ///< programs that may be there while the plan is started
  std::vector<std::string> names;  ///< that somebody has wanted
};

}  // namespace dlock::simulation::migration

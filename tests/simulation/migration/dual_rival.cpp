// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/dual_rival.hpp"

#include <algorithm>
#include <utility>

#include "migration/dual/window.hpp"
#include "migration/plan.hpp"

namespace dlock::simulation::migration {
namespace {

Places rival_places(const Places& first, bool back) {
  return back ? Places{first.target, first.source, first.window} : first;
}

}  // namespace

DualRival::DualRival(World& world, DualFleet first, const Places& places, bool back)
    : world_(world),
      back_(back),
      places_(rival_places(places, back)),
      fleet_(std::move(first)),
      next_(world.now() + (world.chance(0.5) ? Duration{} : world.between({}, seconds(60)))) {
  static const std::vector<std::string> kNames[] = {{"a"}, {"b", "c"}, {"a", "b", "c", "d"}};
  auto& plan = fleet_.plan;
  plan.name = "q";
  plan.names = kNames[world.below(3)];
  if (back) std::swap(plan.from, plan.to);
  fleet_.is_rival = true;
  fleet_.leads_back = back;
}

bool DualRival::is_in_effect() const {
  const auto text = places_.window.note(core::migration::window_key(fleet_.plan.name));
  const auto window = text ? core::migration::parse_window(*text) : std::nullopt;
  return window && window->is_open() && !window->finished;
}

bool DualRival::is_there() const {
  const auto lists = [&](const Server& server, std::string_view list) {
    const auto entries =
        core::migration::parse_list(server.note(std::string(list)).value_or(std::string())).value();
    return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
      return core::migration::plan_of_entry(entry) == fleet_.plan.name;
    });
  };
  using core::migration::kPlansIn;
  using core::migration::kPlansOut;
  return places_.window.note(core::migration::window_key(fleet_.plan.name)) ||
         lists(places_.source, kPlansOut) || lists(places_.target, kPlansIn);
}

void DualRival::look(bool must_go) {
  const bool in_effect = is_in_effect();
  if (in_effect && !was_in_effect_) {
    ++times_in_effect_;
    next_ = world_.now() + world_.between({}, seconds(10));
  }
  was_in_effect_ = in_effect;
  const bool is_due = world_.now() >= next_;
  if (must_go || (in_effect && is_due)) {
    fleet_.order = is_there() ? Order::withdraw : Order::nothing;
  } else if (is_leaving()) {
    if (is_there()) return;
    fleet_.order = Order::nothing;
    next_ = world_.now() + world_.between({}, seconds(60));
  } else {
    fleet_.order = is_due ? Order::start : Order::nothing;
  }
}

}  // namespace dlock::simulation::migration

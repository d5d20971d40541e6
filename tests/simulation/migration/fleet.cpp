// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/fleet.hpp"

#include <fmt/format.h>

#include <list>

#include "core/planted.hpp"
#include "tests/checkers/exclusion.hpp"
#include "tests/simulation/migration/program.hpp"

namespace dlock::simulation::migration {
namespace {

using core::migration::MoveState;

/// Stages of a run: there, back, there, for good. Some go straight to the end.
constexpr Goal kStages[] = {Goal::rollback, Goal::advance, Goal::rollback, Goal::advance,
                            Goal::finish};

class Run {
 public:
  Run(std::uint64_t seed, bool tracing)
      : world_(seed, tracing),
        recorder_(world_),
        source_(false, 1000),
        target_(world_.chance(0.4), world_.chance(0.5) ? 0 : 5000) {
    world_.on_step([this](Process& process) { recorder_.look_at(process); });
    choose();
    publish();
  }

  FleetResult go() {
    recorder_.faulted();
    start_programs();
    // Everybody is there before the first flip, or nobody is: chance decides.
    std::size_t stage = straight_ ? 3 : 0;
    auto stage_until = world_.now() + world_.between({}, seconds(2));
    const auto patience = world_.now() + seconds(120);
    while (world_.now() < patience) {
      tick();
      fleet_.goal = kStages[stage];
      count_flips();
      if (world_.now() < stage_until || !all_at(fleet_.goal)) continue;
      if (fleet_.goal == Goal::finish) {
        fleet_.certify = true;
        if (target_.note(core::migration::home_key(fleet_.plan.name))) break;
        continue;
      }
      ++stage;
      stage_until = world_.now() + (straight_ ? Duration::zero() : world_.between({}, seconds(6)));
    }
    calm();
    return judge();
  }

 private:
  void choose() {
    fleet_.plan.name = "p";
    fleet_.plan.id = "0123456789abcdef";
    fleet_.plan.from = "s";
    fleet_.plan.to = "t";
    fleet_.plan.max_lease = kLease;
    fleet_.plan.lossy_target = target_.is_lossy();
    fleet_.plan.names = {"a", "b"};
    straight_ = world_.chance(0.25);
    if (world_.chance(0.3)) fleet_.longest_think = seconds(3);
    if (world_.chance(0.5)) weather_.loss = 0.02;
    if (world_.chance(0.5)) weather_.late = 0.02;
    pauses_ = world_.chance(0.7) ? 0.02 : 0;
    crashes_ = world_.chance(0.7) ? 0.004 : 0;
    forgets_ = target_.is_lossy() ? 0.03 : 0;
  }

  void publish() {
    const auto text = core::migration::to_text(fleet_.plan);
    for (Server* server : {&source_, &target_}) {
      server->set_note(core::migration::plan_key(fleet_.plan.name), std::nullopt, text);
    }
    target_.set_note(std::string(core::migration::kPlansIn), std::nullopt, fleet_.plan.name);
    source_.set_note(std::string(core::migration::kPlansOut), std::nullopt, fleet_.plan.name);
  }

  void start_programs() {
    const auto workers = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < workers; ++i) add(Program::Kind::worker);
    if (world_.chance(0.5)) add(Program::Kind::source_only);
    if (world_.chance(0.7)) add(Program::Kind::target_only);
    add(Program::Kind::operators);
    if (world_.chance(0.5)) add(Program::Kind::operators);
  }

  void add(Program::Kind kind) {
    static constexpr const char* kLetters = "wsto";
    programs_.emplace_back(world_, recorder_, fleet_, kind,
                           fmt::format("{}{}", kLetters[static_cast<int>(kind)], ++number_),
                           source_, target_, weather_);
    programs_.back().start();
  }

  void tick() {
    std::vector<Program::Kind> died;
    for (auto& program : programs_) {
      auto& process = program.process();
      if (!process.is_alive() || process.is_paused()) continue;
      if (world_.chance(pauses_)) {
        process.pause();
        world_.after(world_.between(milliseconds(1), Duration(kLease) * 2), [&process] {
          if (process.is_paused()) process.resume();
        });
      } else if (world_.chance(crashes_)) {
        program.crash();
        ++result_.crashes;
        died.push_back(program.kind());
      }
    }
    for (const auto kind : died) add(kind);
    const auto& name = fleet_.plan.names[world_.below(2)];
    if (world_.chance(forgets_)) forget(name);
    if (DLOCK_PLANTED("move_record_lost") && world_.chance(0.05)) source_.lose_record(name);
    world_.run_until(world_.now() + milliseconds(100));
  }

  void forget(const std::string& name) {
    const auto owner = target_.forget(name);
    if (!owner.empty()) forgotten_.insert(owner);
  }

  void count_flips() {
    for (const auto& name : fleet_.plan.names) {
      const bool sealed = source_.record(name).has_value();
      if (sealed != std::exchange(sealed_[name], sealed)) ++result_.flips;
    }
  }

  bool all_at(Goal goal) const {
    for (const auto& name : fleet_.plan.names) {
      const auto text = source_.record(name);
      const auto record = text ? core::migration::parse_record(*text) : std::nullopt;
      if (goal == Goal::rollback
              ? record.has_value()
              : !record || (record->state != MoveState::final_ &&
                            (goal == Goal::finish || record->state != MoveState::moved))) {
        return false;
      }
    }
    return true;
  }

  /// All is whole again: the last programs work, then everything ends.
  void calm() {
    weather_ = {};
    forgets_ = 0;
    pauses_ = 0;
    crashes_ = 0;
    result_.finished = target_.note(core::migration::home_key(fleet_.plan.name)).has_value();
    fleet_.longest_think = milliseconds(100);
    const auto patience = world_.now() + seconds(40);
    const auto before = recorder_.acquisitions();
    // Longer than a client of the target alone goes without reading of plans.
    const auto least = world_.now() + seconds(12);
    while (world_.now() < patience &&
           (world_.now() < least || recorder_.acquisitions() < before + 20)) {
      tick();
    }
    grants_when_calm_ = recorder_.acquisitions() - before;
    fleet_.stopping = true;
    while (world_.now() < patience + seconds(30) && !all_idle()) tick();
    idle_ = all_idle();
    for (auto& program : programs_) {
      if (program.process().is_paused()) program.process().resume();
      program.close();
    }
    world_.run_until(world_.now() + seconds(30));
  }

  bool all_idle() {
    for (auto& program : programs_) {
      if (program.process().is_alive() && !program.is_idle()) return false;
    }
    return true;
  }

  /// In a target that forgets, two may hold at once: there, and never one here and one there.
  bool is_permitted(const checkers::Overlap& overlap) const {
    const auto store = [&](GrantId grant) {
      const auto found = fleet_.stores.find(grant);
      return found == fleet_.stores.end() ? std::string() : found->second;
    };
    const auto forgotten = [&](GrantId grant) {
      return forgotten_.count(recorder_.owner_of(grant)) > 0;
    };
    return store(overlap.earlier) == "t" && store(overlap.later) == "t" &&
           (forgotten(overlap.earlier) || forgotten(overlap.later));
  }

  /// Without the grants that a target that forgets has forgotten: told late, such a one may come
  /// after a newer one of the same target.
  checkers::History without_forgotten() const {
    checkers::History kept;
    for (const auto& event : recorder_.history()) {
      const bool forgotten =
          event.grant != 0 && forgotten_.count(recorder_.owner_of(event.grant)) > 0;
      if (!forgotten) kept.push_back(event);
    }
    return kept;
  }

  FleetResult judge() {
    auto& violations = result_.violations;
    for (const auto& overlap : checkers::overlaps_of(recorder_.history(), violations)) {
      if (is_permitted(overlap)) continue;
      violations.push_back(
          {fmt::format("grants {} ({}) and {} ({}) at once", overlap.earlier,
                       fleet_.stores[overlap.earlier], overlap.later, fleet_.stores[overlap.later]),
           overlap.at});
    }
    for (auto&& one : checkers::check_tokens(without_forgotten())) violations.push_back(one);
    for (auto&& one : checkers::check_telling(recorder_.history())) violations.push_back(one);
    for (const auto& one : recorder_.violations()) violations.push_back(one);
    const auto complain = [&](std::string what) {
      violations.push_back({std::move(what), world_.now()});
    };
    if (!result_.finished) complain("the migration did not come to its end");
    if (grants_when_calm_ < 20) complain(fmt::format("{} grants when calm", grants_when_calm_));
    if (!idle_) complain("somebody waits for ever");
    for (const auto& [grant, store] : fleet_.stores) {
      ++(store == "s" ? result_.grants_in_source : result_.grants_in_target);
    }
    result_.grants_of_target_only = fleet_.target_only_grants;
    result_.lossy = target_.is_lossy();
    result_.trace = world_.trace_text();
    return result_;
  }

  World world_;
  Recorder recorder_;
  Server source_;
  Server target_;
  Weather weather_;
  Fleet fleet_;
  bool straight_ = false;
  double pauses_ = 0;
  double crashes_ = 0;
  double forgets_ = 0;
  int number_ = 0;
  bool idle_ = false;
  std::uint64_t grants_when_calm_ = 0;
  std::set<std::string> forgotten_;  ///< owners whose lock the target forgot
  std::map<std::string, bool> sealed_;
  std::list<Program> programs_;
  FleetResult result_;
};

}  // namespace

FleetResult run_fleet(std::uint64_t seed, bool tracing) { return Run(seed, tracing).go(); }

}  // namespace dlock::simulation::migration

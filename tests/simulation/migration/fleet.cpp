// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/fleet.hpp"

#include <fmt/format.h>

#include <list>

#include "tests/simulation/planted.hpp"

namespace dlock::simulation::migration {
namespace {

using core::migration::MoveState;

/// Stages of a run: there, back, there, for good. Some go straight to the end.
constexpr Goal kStages[] = {Goal::rollback, Goal::advance, Goal::rollback, Goal::advance,
                            Goal::finish};

class NamesRun final : MoveRun {
 public:
  NamesRun(std::uint64_t seed, bool tracing)
      : MoveRun(seed, tracing),
        source_(false, 1000),
        target_(world_.chance(0.4), world_.chance(0.5) ? 0 : 5000) {
    choose();
    publish();
  }

  FleetResult go() {
    recorder_.faulted();
    start_programs();
    move();
    if (is_over() && returns_) {
      turn_round();
      move();
    }
    calm();
    return judge();
  }

 private:
  /// A plan, the fleet that takes part in it, and where it goes.
  struct Leg {
    Leg(std::string name, std::string id, Server& source, Server& target)
        : from(source), to(target) {
      fleet.plan.name = std::move(name);
      fleet.plan.id = std::move(id);
      fleet.plan.max_lease = kLease;
      fleet.plan.lossy_target = to.is_lossy();
      fleet.plan.names = {"a", "b"};
    }
    Fleet fleet;
    Server& from;
    Server& to;
  };

  /// Until the plan has come to its end, or all patience has.
  void move() {
    auto& fleet = leg_->fleet;
    // Everybody is there before the first flip, or nobody is: chance decides.
    std::size_t stage = straight_ ? 3 : 0;
    auto stage_until = world_.now() + world_.between({}, seconds(2));
    const auto patience = world_.now() + seconds(120);
    while (world_.now() < patience) {
      tick();
      fleet.goal = kStages[stage];
      count_flips();
      if (world_.now() < stage_until || !all_at(fleet.goal)) continue;
      if (fleet.goal == Goal::finish) {
        fleet.certify = true;
        if (is_over()) break;
        continue;
      }
      ++stage;
      stage_until = world_.now() + (straight_ ? Duration::zero() : world_.between({}, seconds(6)));
    }
  }

  bool is_over() const {
    return leg_->to.note(core::migration::home_key(leg_->fleet.plan.name)) &&
           !leg_->to.note(std::string(core::migration::kPlansIn)) &&
           !leg_->from.note(std::string(core::migration::kPlansOut));
  }

  /// A plan of its own takes the locks back. Some programs of the first are still there, with the
  /// routes that they had.
  void turn_round() {
    for (auto& program : programs_) {
      if (program.kind() == Program::Kind::operators || world_.chance(0.5)) program.crash();
    }
    leg_ = &legs_.emplace_back("q", "fedcba9876543210", target_, source_);
    leg_->fleet.plan.from = "t";
    leg_->fleet.plan.to = "s";
    sealed_.clear();
    straight_ = world_.chance(0.25);
    publish();
    start_programs();
    ++result_.returns;
  }

  void choose() {
    leg_ = &legs_.emplace_back("p", "0123456789abcdef", source_, target_);
    leg_->fleet.plan.from = "s";
    leg_->fleet.plan.to = "t";
    straight_ = world_.chance(0.25);
    returns_ = !target_.is_lossy() && world_.chance(0.4);
    if (world_.chance(0.3)) leg_->fleet.longest_think = seconds(3);
    choose_troubles(0.02, target_.is_lossy());
  }

  void publish() {
    const auto& plan = leg_->fleet.plan;
    const auto text = core::migration::to_text(plan);
    for (Server* server : {&leg_->from, &leg_->to}) {
      server->set_note(core::migration::plan_key(plan.name), std::nullopt, text);
    }
    leg_->to.set_note(std::string(core::migration::kPlansIn), std::nullopt, plan.name);
    leg_->from.set_note(std::string(core::migration::kPlansOut), std::nullopt, plan.name);
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
    programs_.emplace_back(world_, recorder_, leg_->fleet, kind,
                           fmt::format("{}{}", kLetters[static_cast<int>(kind)], ++number_),
                           leg_->from, leg_->to, weather_);
    begin(programs_.back());
  }

  void tick() override {
    for (const auto* const died : strike(programs_)) add(died->kind());
    const auto& name = leg_->fleet.plan.names[world_.below(2)];
    if (is_to_forget()) forget(target_, name);
    if (is_planted("move_record_lost") && world_.chance(0.05)) {
      source_.lose_record(name, world_.now());
    }
    run_for(milliseconds(100));
  }

  void count_flips() {
    for (const auto& name : leg_->fleet.plan.names) {
      const bool sealed = leg_->from.record(name).has_value();
      if (sealed != std::exchange(sealed_[name], sealed)) ++result_.flips;
    }
  }

  bool all_at(Goal goal) const {
    for (const auto& name : leg_->fleet.plan.names) {
      const auto text = leg_->from.record(name);
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
    end_troubles();
    if (!is_over()) complain("the migration did not come to its end");
    for (auto& leg : legs_) leg.fleet.longest_think = milliseconds(100);
    const auto patience = work_in_calm();
    for (auto& leg : legs_) leg.fleet.stopping = true;
    wait_until_idle(patience);
    close_all(seconds(30));
  }

  FleetResult judge() {
    for (const auto& leg : legs_) count(leg.fleet, result_);
    MoveRun::judge(result_);
    return std::move(result_);
  }

  Server source_;
  Server target_;
  std::list<Leg> legs_;
  Leg* leg_ = nullptr;
  bool straight_ = false;
  bool returns_ = false;
  int number_ = 0;
  std::map<std::string, bool> sealed_;
  std::list<Program> programs_;
  FleetResult result_;
};

}  // namespace

FleetResult run_fleet(std::uint64_t seed, bool tracing) { return NamesRun(seed, tracing).go(); }

}  // namespace dlock::simulation::migration

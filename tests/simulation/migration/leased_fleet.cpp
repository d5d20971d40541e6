// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/leased_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "migration/leased/leased_gate.hpp"
#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/progress.hpp"
#include "tests/simulation/migration/leased_mischief.hpp"
#include "tests/simulation/migration/leased_program.hpp"

namespace dlock::simulation::migration {
namespace {

using core::migration::LeasedGate;
using core::migration::LeasedState;
using Role = LeasedProgram::Role;

/// While nothing goes wrong, a lock that is free and wanted is granted within that time: messages,
/// leases and readings of the time before have ended.
constexpr Duration kProgress = seconds(14);
constexpr Duration kTick = milliseconds(100);

class LeasedRun final : FleetRun {
 public:
  LeasedRun(std::uint64_t seed, bool tracing)
      : FleetRun(seed, tracing),
        source_(world_.chance(0.7), world_.chance(0.5) ? 1000 : 9000, world_.chance(0.5)),
        target_(false, world_.chance(0.5) ? 0 : 5000),
        third_(false, 0),
        places_{source_, target_, world_.chance(0.5) ? third_ : target_} {
    weather_.on_answer = [this](Process& process) { strike(process); };
    auto& plan = fleet_.plan;
    plan.name = "p";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.max_lease = kLease;
    plan.patterns = {"a", "b", "c"};
    plan.gate = &places_.gate == &third_ ? "w" : "t";
    plan.lease = world_.chance(0.5) ? milliseconds(1500) : milliseconds(3000);
    fleet_.choose = [this] { return fleet_.plan.patterns[world_.below(3)]; };
    mischief_ = choose_mischief(world_, source_.is_lossy(), fleet_, weather_);
  }

  LeasedResult go() {
    recorder_.faulted();
    start_programs();
    for (std::uint64_t leg = world_.below(5); leg > 0 && !is_over(); --leg) {
      move(world_.chance(0.6) ? Goal::advance : Goal::rollback,
           world_.between(seconds(2), seconds(30)));
      if (world_.chance(0.25)) in_calm([this] { rest(); });
      if (world_.chance(0.25)) in_calm([this] { turn(); });
    }
    move(Goal::finish, seconds(100));
    heal();
    move(Goal::finish, seconds(100));
    calm();
    return judge();
  }

 private:
  void start_programs() {
    const auto workers = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < workers; ++i) add(Role::worker);
    if (world_.chance(0.5)) {
      fleet_.legacy_gone = false;
      add(Role::legacy);
    }
    target_only_comes_ = world_.chance(0.4);
    add(Role::operators);
    if (world_.chance(0.4)) add(Role::operators);
  }

  void add(Role role) {
    static constexpr const char* kLetters = "wlxo";
    Process::Clock clock;
    // Less than what the margins of leases are for.
    clock.drift = 0.0001 * static_cast<double>(world_.below(81)) - 0.004;
    programs_.emplace_back(world_, recorder_, fleet_, role,
                           fmt::format("{}{}", kLetters[static_cast<int>(role)], ++number_), clock,
                           places_, weather_);
    begin(programs_.back());
    world_.trace("{} begins", programs_.back().process().name());
  }

  std::optional<LeasedGate> gate() const {
    const auto text = places_.gate.note(core::migration::leased_key(fleet_.plan.name));
    auto found = text ? core::migration::parse_leased_gate(*text) : std::nullopt;
    if (found && !found->has_begun()) found.reset();
    return found;
  }
  bool is_final() const {
    const auto now_there = gate();
    return now_there && now_there->state == LeasedState::final_;
  }
  bool is_over() const {
    return is_final() && target_.note(core::migration::home_key(fleet_.plan.name));
  }
  bool has_arrived() const {
    const auto now_there = gate();
    if (fleet_.goal == Goal::finish) return is_over();
    if (!now_there) return false;
    return now_there->state ==
           (fleet_.goal == Goal::advance ? LeasedState::target : LeasedState::source);
  }

  void move(Goal goal, Duration patience) {
    fleet_.goal = goal;
    const auto until = world_.now() + patience;
    while (world_.now() < until && !has_arrived()) tick();
  }

  /// Nothing goes wrong while that lasts.
  template <class Work>
  void in_calm(Work work) {
    const auto weather = weather_;
    const auto mischief = mischief_;
    heal();
    fleet_.resting = true;
    work();
    fleet_.resting = false;
    weather_ = weather;
    mischief_ = mischief;
  }

  /// No command runs: everybody gets locks.
  void rest() {
    const auto long_work = std::exchange(fleet_.long_work, fleet_.longest_hold);
    recorder_.healed();
    const auto before = recorder_.acquisitions();
    const bool had_gate = gate().has_value();
    const auto until = world_.now() + kProgress + long_work;
    while (world_.now() < until) tick();
    const bool works = std::any_of(programs_.begin(), programs_.end(), [](auto& program) {
      return program.role() == Role::worker && !program.is_over();
    });
    if (had_gate && works && recorder_.acquisitions() == before) {
      complain("no program was granted a lock while nothing went wrong");
    }
    recorder_.faulted();
    fleet_.long_work = long_work;
  }

  /// Turns there and back end no hold.
  void turn() {
    const auto settled = world_.now() + kProgress;
    while (world_.now() < settled) tick();
    fleet_.resting = false;
    const bool forward = world_.chance(0.5);
    const auto turns = result_.turns;
    move(forward ? Goal::advance : Goal::rollback, seconds(20));
    move(forward ? Goal::rollback : Goal::advance, seconds(20));
    result_.turns_in_calm += result_.turns - turns;
    for (const auto& event : recorder_.history()) {
      if (event.kind != checkers::EventKind::told_lost || event.at < settled) continue;
      if (!fleet_.facts.grants.at(event.grant).takes_part) continue;
      complain(fmt::format("grant {} was lost while nothing went wrong", event.grant));
    }
  }

  void heal() {
    weather_.loss = 0;
    weather_.late = 0;
    weather_.twice = 0;
    mischief_.stop();
    for (auto& program : programs_) {
      program.mend();
      if (program.process().is_paused()) program.process().resume();
    }
    for (Server* server : {&source_, &target_, &third_}) server->go_away(false);
  }

  void tick() override {
    for (auto& program : programs_) trouble(program);
    if (world_.chance(mischief_.wipes)) wipe();
    if (world_.chance(mischief_.aways)) send_away();
    if (world_.chance(mischief_.losses)) lose_gate();
    if (!fleet_.resting) roll();
    note_gate();
    run_for(kTick);
  }

  void trouble(LeasedProgram& program) {
    auto& process = program.process();
    if (program.is_over() || process.is_paused()) return;
    const std::size_t gate_link = &places_.gate == &third_ ? 2 : 1;
    if (world_.chance(mischief_.pauses)) {
      pause(process);
    } else if (world_.chance(mischief_.crashes)) {
      crash(program);
    } else if (world_.chance(mischief_.cuts)) {
      program.cut(world_.below(gate_link + 1), world_.between(milliseconds(300), seconds(15)));
      ++result_.cuts;
    } else if (world_.chance(mischief_.exiles)) {
      program.cut(gate_link, world_.between(seconds(5), seconds(20)));
      ++result_.cuts;
    }
  }

  void strike(Process& process) {
    if (mischief_.stalls > 0 && world_.chance(mischief_.stalls)) return pause(process);
    if (mischief_.kills == 0 || !world_.chance(mischief_.kills)) return;
    for (auto& program : programs_) {
      if (&program.process() == &process) crash(program);
    }
  }

  void pause(Process& process) {
    if (process.is_paused()) return;
    process.pause();
    world_.trace("{}: stands still", process.name());
    const auto longest = world_.chance(0.5) ? Duration(kLease) : seconds(14);
    world_.after(world_.between(milliseconds(1), longest), [this, &process] {
      if (!process.is_paused()) return;
      world_.trace("{}: continues", process.name());
      process.resume();
    });
  }

  void wipe() {
    LeasedFacts::Wipe wipe{world_.now(), {}};
    for (const auto& [lock, owner] : source_.wipe(world_.now())) wipe.holders[lock] = owner.app;
    world_.trace("the source forgets everything");
    fleet_.facts.wipes.push_back(std::move(wipe));
    ++result_.wipes;
  }

  void send_away() {
    Server* const all[] = {&source_, &target_, &third_};
    auto* const server = all[world_.below(3)];
    if (server->is_away()) return;
    server->go_away(true);
    world_.trace("a store is away");
    world_.after(world_.between(milliseconds(500), seconds(12)),
                 [server] { server->go_away(false); });
  }

  void lose_gate() {
    note_gate();
    const auto now_there = gate();
    if (!now_there || now_there->state == LeasedState::final_) return;
    const auto key = core::migration::leased_key(fleet_.plan.name);
    places_.gate.set_note(key, places_.gate.note(key), std::nullopt);
    world_.trace("the gate is lost");
    ++result_.losses;
  }

  void roll() {
    std::vector<Role> due;
    for (auto& program : programs_) {
      if (!program.is_over() || !program.replace()) continue;
      if (program.role() != Role::legacy || !legacy_ends_) due.push_back(program.role());
    }
    for (const auto role : due) add(role);
    // Before the plan is published nothing tells it to wait.
    if (fleet_.started && std::exchange(target_only_comes_, false)) add(Role::target_only);
    end_legacy();
  }

  /// Programs that know the source alone end before the source is left, and may return when the
  /// plan is far back.
  void end_legacy() {
    const auto now_there = gate();
    if (!now_there) return;
    const bool is_at_home = now_there->state == LeasedState::source;
    if (fleet_.legacy_gone) {
      const bool may_return = is_at_home && fleet_.goal == Goal::rollback && fleet_.commands == 0;
      if (may_return && world_.chance(0.01)) {
        fleet_.legacy_gone = false;
        add(Role::legacy);
      }
      return;
    }
    if (!legacy_ends_) legacy_ends_ = fleet_.goal != Goal::rollback && world_.chance(0.03);
    if (!legacy_ends_) return;
    bool all_over = true;
    for (auto& program : programs_) {
      if (program.role() != Role::legacy || program.is_over()) continue;
      all_over = false;
      if (world_.chance(0.5)) {
        program.stop();
      } else {
        crash(program);
      }
    }
    if (!all_over) return;
    fleet_.legacy_gone = true;
    legacy_ends_ = false;
  }

  void note_gate() {
    const auto now_there = gate();
    fleet_.restore.reset();
    if (result_.losses > 0 && !now_there && last_) {
      const bool is_target = last_->state == LeasedState::target;
      fleet_.restore = is_target ? LeasedState::target : LeasedState::source;
    }
    if (!now_there || now_there == last_) return;
    const bool is_turn =
        !last_ || last_->version != now_there->version || last_->born != now_there->born;
    last_ = now_there;
    if (!is_turn) return;
    ++result_.turns;
    world_.trace("the gate is {}, floor {}", to_string(last_->state), last_->floor);
  }

  // Whoever believes in the source alone and whoever believes in the target alone do not meet.
  void stepped() override {
    GrantId in_source = 0;
    GrantId in_target = 0;
    for (auto& program : programs_) {
      program.each_hold([&](GrantId grant, bool source, bool target) {
        if (source && target) {
          if (seen_in_both_.insert(grant).second) ++result_.in_both;
          return;
        }
        (source ? in_source : in_target) = grant;
        const auto known = seen_alone_.emplace(grant, source);
        if (known.first->second == source) return;
        known.first->second = source;
        ++result_.moved;
      });
    }
    if (in_source == 0 || in_target == 0 || std::exchange(apart_complained_, true)) return;
    complain(fmt::format("grant {} is in the source alone and grant {} in the target alone",
                         in_source, in_target));
  }

  void calm() {
    finished_ = is_over();
    fleet_.longest_think = milliseconds(100);
    fleet_.long_work = fleet_.longest_hold;
    const auto patience = work_in_calm();
    fleet_.resting = true;
    fleet_.stopping = true;
    wait_until_idle(patience);
    run_for(milliseconds(500));
    for (const auto& name : fleet_.plan.patterns) {
      for (const Server* server : {&source_, &target_}) {
        const auto status = server->inspect(name, world_.now());
        if (!status.held) continue;
        complain(fmt::format("'{}' is left in the {} by {}", name,
                             server == &source_ ? "source" : "target", status.owner->app));
      }
    }
    close_all(seconds(15));
  }

  LeasedResult judge() {
    const auto& history = recorder_.history();
    const auto& facts = fleet_.facts;
    const auto add_all = [&](const checkers::Violations& found) {
      complaints_.insert(complaints_.end(), found.begin(), found.end());
    };
    add_all(check_leased_holders(history, facts, kLease));
    add_all(check_leased_tokens(history, facts, kLease));
    add_all(checkers::check_telling(history));
    add_all(checkers::check_progress(history, kProgress, world_.now()));
    add_all(recorder_.violations());
    if (!finished_) complain("the migration did not come to its end");
    for (const auto& [id, grant] : facts.grants) {
      if (grant.is_legacy) {
        ++result_.grants_of_legacy;
      } else if (!grant.takes_part) {
        ++result_.grants_of_target_only;
      } else {
        ++(grant.is_source_shown ? result_.grants_of_source : result_.grants_of_target);
      }
    }
    tell(result_);
    return std::move(result_);
  }

  Server source_;
  Server target_;
  Server third_;
  const Places places_;
  Mischief mischief_;
  LeasedFleet fleet_;
  bool finished_ = false;
  bool legacy_ends_ = false;
  bool target_only_comes_ = false;
  bool apart_complained_ = false;
  int number_ = 0;
  std::optional<LeasedGate> last_;
  std::list<LeasedProgram> programs_;
  std::set<GrantId> seen_in_both_;
  std::map<GrantId, bool> seen_alone_;  ///< true: in the source
  LeasedResult result_;
};

}  // namespace

LeasedResult run_leased_fleet(std::uint64_t seed, bool tracing) {
  return LeasedRun(seed, tracing).go();
}

}  // namespace dlock::simulation::migration

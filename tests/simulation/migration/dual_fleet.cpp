// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/dual_fleet.hpp"

#include <fmt/format.h>

#include <list>
#include <optional>
#include <random>

#include "migration/dual/window.hpp"
#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/progress.hpp"
#include "tests/simulation/migration/dual_mischief.hpp"
#include "tests/simulation/migration/dual_program.hpp"
#include "tests/simulation/migration/dual_rival.hpp"

namespace dlock::simulation::migration {
namespace {

using core::migration::Window;
using Role = DualProgram::Role;

/// While nothing goes wrong, a lock that is free and wanted is granted within that: what was
/// underway is over (messages, leases, registrations), and somebody's turn has come.
constexpr Duration kProgress = seconds(14);
constexpr Duration kTick = milliseconds(100);

class DualRun final : FleetRun {
 public:
  DualRun(std::uint64_t seed, bool tracing)
      : FleetRun(seed, tracing),
        source_(world_.chance(0.7), world_.chance(0.5) ? 1000 : 9000, world_.chance(0.5)),
        target_(false, world_.chance(0.5) ? 0 : 5000),
        third_(false, 0),
        places_{source_, target_, world_.chance(0.5) ? third_ : target_} {
    weather_.on_answer = [this](Process& process) { strike(process); };
    plan();
    mischief_ = choose_mischief(world_, source_.is_lossy(), fleet_, weather_);
    has_rival_ = std::minstd_rand(static_cast<std::uint32_t>(seed))() % 3 == 0;
  }

  DualResult go() {
    recorder_.faulted();
    start_programs();
    if (has_rival_) start_rival();
    for (std::uint64_t leg = world_.below(4); leg > 0 && !is_over(); --leg) {
      move(world_.chance(0.6) ? Goal::advance : Goal::rollback,
           world_.between(seconds(2), seconds(40)));
      if (world_.chance(0.25)) rest();
    }
    move(Goal::finish, seconds(150));
    // What went wrong may have held it up; from now on nothing does.
    heal();
    move(Goal::finish, seconds(120));
    calm();
    return judge();
  }

 private:
  void plan() {
    fleet_.is_finished = [this] {
      const auto now_there = window();
      return now_there && now_there->finished;
    };
    auto& plan = fleet_.plan;
    plan.name = "p";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.max_lease = kLease;
    plan.names = {"a", "b", "c"};
    plan.mode = MigrateMode::dual;
    plan.window = &places_.window == &third_ ? "w" : "t";
    plan.registration = world_.chance(0.5) ? milliseconds(1500) : milliseconds(3000);
  }

  void start_programs() {
    const auto workers = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < workers; ++i) add(Role::worker, Sort::source);
    if (world_.chance(0.5)) add_legacy();
    target_only_comes_ = world_.chance(0.4);
    add(Role::operators, Sort::source);
    if (world_.chance(0.4)) add(Role::operators, Sort::source);
  }

  /// One that leads back and comes first would not meet those who know of no plan.
  void start_rival() {
    rival_.emplace(world_, fleet_, places_, fleet_.legacy_gone && world_.chance(0.4));
    add(Role::operators, Sort::source, true);
    if (world_.chance(0.4)) add(Role::operators, Sort::source, true);
    if (!rival_->leads_back()) add_rival_workers();
  }

  void add_rival_workers() {
    rivals_work_ = true;
    for (std::uint64_t i = 0; i <= world_.below(2); ++i) add(Role::worker, Sort::source, true);
  }

  void add(Role role, Sort sort, bool of_rival = false) {
    static constexpr const char* kLetters = "lsbtx";
    Process::Clock clock;
    // Less than what leases' margins are for.
    clock.drift = 0.0001 * static_cast<double>(world_.below(81)) - 0.004;
    const char letter = role == Role::operators ? 'o' : kLetters[static_cast<int>(sort)];
    programs_.emplace_back(world_, recorder_, of_rival ? rival_->fleet() : fleet_,
                           DualProgram::Part{role, sort},
                           fmt::format("{}{}{}", of_rival ? "-" : "", letter, ++number_), clock,
                           of_rival ? rival_->places() : places_, weather_);
    begin(programs_.back());
    if (world_.chance(mischief_.laggards)) {
      programs_.back().lag_until(world_.now() + world_.between(seconds(5), seconds(30)));
    }
    world_.trace("{} begins, {}", programs_.back().process().name(),
                 role == Role::operators ? "an operator" : to_string(sort));
  }

  void add_legacy() {
    fleet_.legacy_gone = false;
    add(Role::worker, Sort::legacy);
  }

  std::optional<Window> window() const {
    const auto text = places_.window.note(core::migration::window_key(fleet_.plan.name));
    return text ? core::migration::parse_window(*text) : std::nullopt;
  }

  bool is_over() const {
    const auto now_there = window();
    return target_.note(core::migration::home_key(fleet_.plan.name)) && now_there &&
           now_there->finished;
  }

  bool has_arrived() const {
    const auto now_there = window();
    if (fleet_.goal == Goal::finish) return is_over();
    if (!now_there) return false;
    const int end = fleet_.goal == Goal::advance ? 2 : 0;
    return now_there->lo == end && now_there->hi == end;
  }

  void move(Goal goal, Duration patience) {
    fleet_.goal = goal;
    world_.trace("the aim is to {}", goal == Goal::advance    ? "advance"
                                     : goal == Goal::rollback ? "roll back"
                                                              : "finish");
    const auto until = world_.now() + patience;
    while (world_.now() < until && !has_arrived()) tick();
  }

  /// Everything is whole for a while, and no command runs: whoever is admitted gets his locks.
  void rest() {
    const auto weather = weather_;
    const auto mischief = mischief_;
    const auto long_work = fleet_.long_work;
    heal();
    fleet_.long_work = fleet_.longest_hold;
    fleet_.resting = true;
    if (rival_) rival_->rest(true);
    resting_ = true;
    recorder_.healed();
    const auto before = recorder_.acquisitions();
    const auto window_before = last_ ? last_->ver : 0;
    // Whoever holds a lock for long may do so till then.
    const auto until = world_.now() + kProgress + long_work;
    while (world_.now() < until) tick();
    // Programs of a phase that is closed are refused.
    const bool anybody = std::any_of(programs_.begin(), programs_.end(), [&](auto& program) {
      return program.is_worker() && !program.fleet().is_rival && !program.is_over() &&
             is_admitted(program.part().sort);
    });
    const bool same_window = last_ && last_->ver == window_before;
    if (same_window && anybody && recorder_.acquisitions() == before) {
      complain("nobody was granted anything while all was whole");
    }
    recorder_.faulted();
    resting_ = false;
    fleet_.resting = false;
    if (rival_) rival_->rest(false);
    fleet_.long_work = long_work;
    weather_ = weather;
    mischief_ = mischief;
  }

  bool is_admitted(Sort sort) const {
    const auto now_there = window();
    const int phase = phase_of(sort);
    return now_there && phase >= 0 && now_there->admits(phase);
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
    if (world_.chance(mischief_.losses)) lose_window();
    if (!resting_) roll();
    if (rival_) look_at_rival();
    note_window();
    run_for(kTick);
  }

  void trouble(DualProgram& program) {
    auto& process = program.process();
    if (program.is_over() || process.is_paused()) return;
    if (world_.chance(mischief_.pauses)) {
      pause(process);
    } else if (world_.chance(mischief_.crashes)) {
      crash(program);
    } else if (world_.chance(mischief_.cuts)) {
      program.cut(world_.below(window_link() + 1), world_.between(milliseconds(300), seconds(15)));
      ++result_.cuts;
    } else if (world_.chance(mischief_.exiles)) {
      program.cut(window_link(), world_.between(seconds(5), seconds(20)));
      ++result_.cuts;
    }
  }

  std::size_t window_link() const { return &places_.window == &third_ ? 2 : 1; }

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
      world_.trace("{}: goes on", process.name());
      process.resume();
    });
  }

  void wipe() {
    DualFacts::Wipe wipe{world_.now(), {}};
    for (const auto& [lock, owner] : source_.wipe(world_.now())) wipe.holders[lock] = owner.app;
    world_.trace("the source forgets everything");
    fleet_.facts->wipes.push_back(std::move(wipe));
    ++result_.wipes;
  }

  void lose_window() {
    const auto key = core::migration::window_key(fleet_.plan.name);
    const auto text = places_.window.note(key);
    // What is finished is not restored: its programs are to name the target alone.
    if (!text || window()->finished) return;
    places_.window.set_note(key, text, std::nullopt);
    world_.trace("the window is lost");
    ++result_.losses;
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

  /// The operator of the fleet: ends programs and starts them anew in the phase that is due.
  void roll() {
    const auto now_there = window();
    std::vector<DualProgram::Part> due;
    for (auto& program : programs_) {
      if (program.fleet().is_rival) continue;
      if (program.is_over()) {
        if (!program.replace()) continue;
        const bool is_legacy = program.is_worker() && program.part().sort == Sort::legacy;
        if (!is_legacy || !legacy_ends_) due.push_back(program.part());
      } else if (program.is_stopping()) {
        if (!calm_ && world_.now() >= program.stopped_at() + seconds(5)) crash(program);
      } else if (now_there && wants_restart(program, *now_there)) {
        ++result_.restarts;
        if (calm_ || world_.chance(0.7)) {
          program.stop();
        } else {
          crash(program);
        }
      }
    }
    // Before the plan is published nothing tells it to wait.
    if (fleet_.started && std::exchange(target_only_comes_, false)) {
      add(Role::worker, Sort::target_only);
    }
    for (const auto& part : due) add(part.role, next_sort(part, now_there));
    if (now_there) end_legacy(*now_there);
  }

  void look_at_rival() {
    // Nothing else may stand in the way at the end; and then it is tried once more.
    rival_->look(fleet_.goal == Goal::finish && !is_over());
    if (rival_->is_in_effect() && window() && window()->is_open() && !is_over()) {
      if (!std::exchange(both_complained_, true)) complain("two plans are in effect at once");
    }
    if (is_over() && rival_->is_in_effect() && !rival_->leads_back()) {
      if (!std::exchange(both_complained_, true)) {
        complain("a plan begins where a finished one has left");
      }
    }
    if (fleet_.started && !std::exchange(rivals_work_, true)) add_rival_workers();
    if (!resting_) roll_rival();
  }

  void roll_rival() {
    std::vector<DualProgram::Part> due;
    for (auto& program : programs_) {
      if (!program.fleet().is_rival) continue;
      const bool leaves = program.is_worker() && rival_->is_leaving();
      if (program.is_over()) {
        if (!leaves && program.replace()) due.push_back(program.part());
      } else if (program.is_stopping()) {
        if (!calm_ && world_.now() >= program.stopped_at() + seconds(5)) crash(program);
      } else if (leaves) {
        world_.chance(0.5) ? program.stop() : crash(program);
      }
    }
    for (const auto& part : due) add(part.role, part.sort, true);
  }

  int phase_due(const Window& now_there) const {
    return fleet_.goal == Goal::rollback ? now_there.lo : now_there.hi;
  }

  bool wants_restart(DualProgram& program, const Window& now_there) {
    const int phase = phase_of(program.part().sort);
    if (!program.is_worker() || phase < 0) return false;
    if (phase != phase_due(now_there)) {
      return world_.now() >= program.lags_until() && world_.chance(mischief_.pace);
    }
    return !calm_ && world_.chance(0.002);
  }

  Sort next_sort(const DualProgram::Part& part, const std::optional<Window>& now_there) {
    static constexpr Sort kSorts[] = {Sort::source, Sort::both, Sort::target};
    if (part.role == Role::operators || phase_of(part.sort) < 0) return part.sort;
    if (!now_there) return part.sort;
    // Somebody takes the wrong configuration, and is refused.
    if (world_.chance(0.1)) return kSorts[world_.below(3)];
    return kSorts[phase_due(*now_there)];
  }

  /// Programs that know of no plan end before phase 2 is opened, and may come back when it is far.
  void end_legacy(const Window& now_there) {
    if (fleet_.legacy_gone) {
      const bool far = now_there.lo == 0 && fleet_.goal == Goal::rollback;
      if (far && fleet_.commands == 0 && world_.chance(0.01)) add_legacy();
      return;
    }
    if (!legacy_ends_) {
      legacy_ends_ = fleet_.goal != Goal::rollback && now_there.lo == 1 && world_.chance(0.03);
    }
    if (!legacy_ends_) return;
    bool all_over = true;
    for (auto& program : programs_) {
      if (!program.is_worker() || program.part().sort != Sort::legacy || program.is_over()) {
        continue;
      }
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

  void note_window() {
    const auto now_there = window();
    fleet_.restore.reset();
    if (result_.losses > 0 && !now_there) {
      fleet_.restore.emplace(last_ ? last_->lo : 0, last_ ? last_->hi : 0);
    }
    if (!now_there || !now_there->is_open()) return;
    if (last_ && last_->ver == now_there->ver && last_->born == now_there->born) return;
    world_.trace("the window is {}..{}, floor {}", now_there->lo, now_there->hi, now_there->floor);
    ++result_.windows;
    // Of one that has moved on between two looks the floor at its beginning was another.
    const bool begun = (!last_ || now_there->born != last_->born) && now_there->ver == 1;
    const bool opened = begun || (last_ && now_there->lo < last_->lo);
    if (opened && now_there->lo == 0) {
      fleet_.facts->openings_of_zero.push_back({world_.now(), now_there->floor});
    }
    last_ = now_there;
  }

  /// All is whole again: the last programs work, then everything ends.
  void calm() {
    finished_ = is_over();
    calm_ = true;
    for (auto* const fleet : {&fleet_, rival_ ? &rival_->fleet() : &fleet_}) {
      fleet->longest_think = milliseconds(100);
      fleet->long_work = fleet->longest_hold;
    }
    const auto patience = work_in_calm();
    resting_ = true;
    fleet_.stopping = true;
    if (rival_) rival_->fleet().stopping = true;
    wait_until_idle(patience);
    run_for(milliseconds(500));
    look_for_leftovers();
    close_all(seconds(15));
  }

  void look_for_leftovers() {
    for (const auto& name : fleet_.plan.names) {
      for (const Server* server : {&source_, &target_}) {
        const auto status = server->inspect(name, world_.now());
        if (!status.held) continue;
        complain(fmt::format("'{}' is left behind in the {} by {}", name,
                             server == &source_ ? "source" : "target", status.owner->app));
      }
    }
  }

  DualResult judge() {
    const auto& history = recorder_.history();
    const auto& facts = *fleet_.facts;
    const auto add = [&](const checkers::Violations& found) {
      complaints_.insert(complaints_.end(), found.begin(), found.end());
    };
    add(check_holders(history, facts, kLease));
    add(check_shown_tokens(history, facts, kLease));
    add(checkers::check_telling(history));
    add(checkers::check_progress(history, kProgress, world_.now()));
    add(recorder_.violations());
    if (fleet_.finished_started_again) complain("a finished plan was started again");
    if (!finished_) complain("the migration did not come to its end");
    for (const auto& [id, grant] : facts.grants) {
      if (const int phase = phase_of(grant.sort); phase >= 0) {
        ++result_.grants_of_phase[phase];
      } else {
        ++(grant.sort == Sort::legacy ? result_.grants_of_legacy : result_.grants_of_target_only);
      }
    }
    if (rival_) {
      result_.rivals += rival_->times_in_effect();
      result_.refused_starts += rival_->fleet().refused;
    }
    tell(result_);
    return std::move(result_);
  }

  Server source_;
  Server target_;
  Server third_;
  const Places places_;
  Mischief mischief_;
  DualFleet fleet_;
  bool resting_ = false;
  bool calm_ = false;
  bool finished_ = false;
  bool legacy_ends_ = false;
  bool target_only_comes_ = false;
  bool has_rival_ = false;
  bool rivals_work_ = false;
  bool both_complained_ = false;
  std::optional<DualRival> rival_;
  int number_ = 0;
  std::optional<Window> last_;
  std::list<DualProgram> programs_;
  DualResult result_;
};

}  // namespace

DualResult run_dual_fleet(std::uint64_t seed, bool tracing) { return DualRun(seed, tracing).go(); }

}  // namespace dlock::simulation::migration

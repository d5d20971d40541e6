// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/gate_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <random>

#include "tests/simulation/migration/gate_leg.hpp"
#include "tests/simulation/planted.hpp"

namespace dlock::simulation::migration {
namespace {

using Kind = Program::Kind;

constexpr std::size_t kMostNames = 14;
const std::vector<std::string> kPatterns{"a", "b", "o/**"};

/// For messages.
std::string text_of(const Server& server, std::string_view list) {
  auto text = server.note(std::string(list)).value_or("-");
  std::replace(text.begin(), text.end(), '\n', ',');
  return text;
}

struct Member final : Program {
  Member(World& world, Recorder& recorder, Leg& whose, Kind what, bool of_rival, std::string name,
         const Weather& weather)
      : Program(world, recorder, whose.fleet, what, std::move(name), whose.from, whose.to, weather),
        leg(whose),
        rival(of_rival) {}
  Leg& leg;
  bool rival;
};

class GateRun final : MoveRun {
 public:
  GateRun(std::uint64_t seed, bool tracing)
      : MoveRun(seed, tracing),
        source_(false, 1000, true, any_ways()),
        target_(world_.chance(0.3), world_.chance(0.5) ? 0 : 5000, true, any_ways()) {
    choose();
    // A generator of its own: without it a run has the same course as before.
    travels_ = std::minstd_rand(static_cast<std::uint32_t>(seed))() % 2 == 0;
  }

  GateResult go() {
    recorder_.faulted();
    add_leg("p", kPatterns, s_, t_);
    if (world_.chance(0.3)) {
      const bool back = !target_.is_lossy() && world_.chance(0.5);
      add_leg("r", {"z/**"}, back ? t_ : s_, back ? s_ : t_);
    }
    move();
    if (all_over() && returns_) {
      ++result_.returns;
      // What nobody uses on the way has its old place when it comes home.
      const auto names = legs_.front().names;
      const std::vector<std::string> few{"a", "b"};
      go_on("q", t_, s_, travels_ ? few : names);
      if (all_over() && travels_) go_on("m", s_, u_, few);
      if (all_over() && travels_) {
        ++result_.travels;
        go_on("n", u_, s_, names);
      }
    }
    calm();
    return judge();
  }

 private:
  Ways any_ways() { return {world_.chance(0.5), world_.chance(0.5)}; }

  void choose() {
    returns_ = !target_.is_lossy() && world_.chance(0.4);
    longest_think_ = world_.chance(0.3) ? Duration(seconds(3)) : Duration(milliseconds(300));
    choose_troubles(0.005, target_.is_lossy());  // a start asks for many things
    meddles_ = world_.chance(0.4);
  }

  void add_leg(const std::string& name, std::vector<std::string> patterns, const Stop& from,
               const Stop& to) {
    auto& leg = legs_.emplace_back(name, std::move(patterns), from, to);
    leg.fleet.longest_think = longest_think_;
    leg.names = name == "r" ? std::vector<std::string>{"z/0"} : std::vector<std::string>{"a", "b"};
    leg.fleet.choose = [this, &leg] { return choose_name(leg); };
    leg.orders.choose = leg.fleet.choose;
    leg.fleet.command = [this, &leg](Command command) {
      return carry_out(std::move(command), world_, leg.orders);
    };
    choose_stages(leg);
    const auto workers = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < workers; ++i) add(leg, Kind::worker);
    if (world_.chance(0.5)) add(leg, Kind::source_only);
    add(leg, Kind::operators);
    if (world_.chance(0.5)) add(leg, Kind::operators);
    leg.stage_until = world_.now() + world_.between({}, seconds(2));
  }

  void choose_stages(Leg& leg) {
    leg.stages = {Aim::start};
    if (!world_.chance(0.25)) {
      const auto rounds = world_.below(3);
      for (std::uint64_t i = 0; i < rounds; ++i) {
        leg.stages.push_back(Aim::advance);
        leg.stages.push_back(Aim::rollback);
        if (!world_.chance(0.4)) continue;
        leg.stages.push_back(Aim::withdraw);
        leg.stages.push_back(Aim::start);
      }
      leg.stages.push_back(Aim::advance);
    }
    leg.stages.push_back(Aim::finish);
  }

  /// Some again and again, some for the first time.
  std::string choose_name(Leg& leg) {
    auto& names = leg.names;
    if (names.size() < kMostNames && world_.chance(0.1)) {
      const auto* const folder = leg.orders.plan.name == "r" ? "z" : "o";
      return names.emplace_back(fmt::format("{}/{}", folder, ++last_name_));
    }
    const auto recent = std::min<std::size_t>(names.size(), 4);
    if (world_.chance(0.5)) return names[names.size() - 1 - world_.below(recent)];
    return names[world_.below(names.size())];
  }

  /// Runs until all plans are finished, or 300 s have passed.
  void move() {
    const auto patience = world_.now() + seconds(300);
    while (world_.now() < patience && !all_over()) {
      tick();
      if (world_.now() > patience - seconds(150)) weather_.loss = 0;
      for (auto& leg : legs_) {
        if (!leg.over) look_at(leg);
      }
    }
  }

  bool all_over() const {
    return std::all_of(legs_.begin(), legs_.end(), [](const Leg& leg) { return leg.over; });
  }

  void look_at(Leg& leg) {
    check_text(leg);
    const bool withdrawn = leg.aim() == Aim::withdraw;
    if (leg.orders.started && leg.is_listed() && leg.aim() != Aim::start && !withdrawn &&
        !leg.has_guests) {
      leg.has_guests = true;
      if (world_.chance(0.7)) add(leg, Kind::target_only);
      if (meddles_ && leg.aim() != Aim::finish) meddle(leg);
    }
    if (world_.now() < leg.stage_until || !is_reached(leg)) return;
    if (leg.aim() == Aim::finish) {
      leg.over = true;
      if (auto gate = leg.gate()) result_.turns += gate->version;
      return;
    }
    if (withdrawn || leg.aim() == Aim::start) check_withdrawn(leg);
    if (withdrawn) {
      ++result_.withdrawals;
      // Whoever withdraws waits for the end of all commands that do before it is started again.
      stop_those([&](const Member& member) {
        return &member.leg == &leg && member.kind() == Kind::operators;
      });
      add(leg, Kind::operators);
      if (world_.chance(0.5)) add(leg, Kind::operators);
    }
    enter(leg, leg.stage + 1);
  }

  void enter(Leg& leg, std::size_t stage) {
    leg.stage = stage;
    leg.orders.aim = leg.stages[stage];
    leg.orders.done = false;
    if (leg.aim() == Aim::start) leg.orders.started = false;
    leg.stage_until = world_.now() + world_.between({}, seconds(5));
    world_.trace("plan {}: {}", leg.orders.plan.name, to_string(leg.aim()));
    if (leg.aim() == Aim::withdraw) {
      // Whoever knows the target alone when no plan leads there is nobody's to keep out.
      stop_those([&](const Member& member) {
        return member.rival || (&member.leg == &leg && member.kind() == Kind::target_only);
      });
      leg.has_guests = false;
      leg.orders.started = false;
    } else if (leg.aim() == Aim::finish) {
      // As the command asks for: those that do not take part are stopped before.
      if (!is_planted("gate_source_only_left")) {
        stop_those([&](const Member& member) {
          return member.rival || (&member.leg == &leg ? member.kind() == Kind::source_only
                                                      : share_names(member.leg, leg));
        });
      }
      leg.orders.strangers_gone = true;
    }
  }

  static bool share_names(const Leg& one, const Leg& other) {
    return core::migration::common_names(one.orders.plan, other.orders.plan).has_value();
  }

  bool is_reached(const Leg& leg) const {
    switch (leg.aim()) {
      case Aim::start:
        return leg.orders.started && leg.is_listed();
      case Aim::withdraw:
        return !leg.is_listed_anywhere();
      case Aim::finish:
        return leg.is_finished();
      case Aim::advance:
      case Aim::rollback:
        break;
    }
    return leg.orders.done;
  }

  /// A plan that was withdrawn, or has only just been started, has sealed nothing.
  void check_withdrawn(const Leg& leg) {
    for (const auto& name : leg.names) {
      const auto record = leg.from.record(name);
      if (!record || record->find(" plan=" + leg.orders.plan.name + " ") == std::string::npos) {
        continue;
      }
      complain(fmt::format("'{}' is sealed by a plan that was withdrawn", name));
    }
  }

  /// Plans that share names with one that has been started: their starts are refused, and leave
  /// nothing. A program has the route of one of them.
  void meddle(Leg& leg) {
    const bool back = !leg.to.is_lossy() && world_.chance(0.5);
    const bool namesake = world_.chance(0.3);
    static const std::vector<std::string> kShared[] = {{"a", "z/0"}, {"o/1*", "z/*"}, {"**"}};
    auto& rival = rivals_.emplace_back(
        namesake ? leg.orders.plan.name : "x", kShared[world_.below(3)],
        back ? stop_of(leg.to) : stop_of(leg.from), back ? stop_of(leg.from) : stop_of(leg.to));
    rival.orders.contrary = false;
    rival.fleet.longest_think = longest_think_;
    rival.fleet.choose = leg.fleet.choose;
    rival.fleet.command = [this, &rival](Command command) {
      return carry_out(std::move(command), world_, rival.orders);
    };
    add(rival, Kind::operators, true);
    if (!namesake) add(rival, Kind::worker, true);
  }

  void check_text(const Leg& leg) {
    for (const Server* server : {&leg.from, &leg.to}) {
      const auto text = server->note(core::migration::plan_key(leg.orders.plan.name));
      const auto plan = text ? core::migration::parse_plan(*text) : std::nullopt;
      if (plan && plan->patterns != leg.orders.plan.patterns) complain("another plan's text");
      const bool written = server->note(core::migration::plan_key("x")) ||
                           server->note(core::migration::gate_key("x")) ||
                           lists(*server, kPlansIn, "x") || lists(*server, kPlansOut, "x");
      if (written) complain("a start that was refused has written something");
    }
  }

  void add(Leg& leg, Kind kind, bool rival = false) {
    static constexpr const char* kLetters = "wsto";
    auto name = fmt::format("{}{}{}{}", rival ? "-" : "", leg.orders.plan.name,
                            kLetters[static_cast<int>(kind)], ++number_);
    begin(members_.emplace_back(world_, recorder_, leg, kind, rival, std::move(name), weather_));
  }

  template <class Predicate>
  void stop_those(Predicate predicate) {
    for (auto& member : members_) {
      if (member.is_alive() && predicate(member)) member.crash();
    }
  }

  /// Whether one that has died is started again.
  static bool may_run(const Member& member) {
    const auto aim = member.leg.aim();
    const bool leaves = aim == Aim::withdraw || aim == Aim::finish;
    if (member.rival) return false;
    if (member.kind() == Kind::source_only) return aim != Aim::finish;
    if (member.kind() != Kind::target_only) return true;
    return member.leg.over || (!leaves && aim != Aim::start) ||
           (aim == Aim::finish && member.leg.is_listed());
  }

  void tick() override {
    for (auto* const died : strike(members_)) {
      if (may_run(*died)) add(died->leg, died->kind());
    }
    if (is_to_forget()) {
      const auto& names = legs_.front().names;
      forget(target_, names[world_.below(names.size())]);
    }
    if (is_planted("move_record_lost") && world_.chance(0.05)) {
      const auto& names = legs_.front().names;
      source_.lose_record(names[world_.below(names.size())], world_.now());
    }
    run_for(milliseconds(100));
  }

  const Stop& stop_of(const Server& server) const {
    return &server == &source_ ? s_ : &server == &target_ ? t_ : u_;
  }

  /// A plan of its own takes the locks of the last one back, or on. Some programs of that are there
  /// still.
  void go_on(const std::string& name, const Stop& from, const Stop& to,
             std::vector<std::string> names) {
    auto& last = chain_ == nullptr ? legs_.front() : *chain_;
    stop_those([&](const Member& member) {
      return member.kind() == Kind::operators || (&member.leg == &last && world_.chance(0.5));
    });
    last.superseded = true;
    add_leg(name, kPatterns, from, to);
    chain_ = &legs_.back();
    chain_->names = std::move(names);
    move();
  }

  /// All is whole again: each lock can be had by who knows the last target alone, and by programs
  /// of the route; then everything ends.
  void calm() {
    end_troubles();
    if (!all_over()) {
      complain(fmt::format("a plan did not come to its end; S: {} {}, T: {} {}",
                           text_of(source_, kPlansOut), text_of(source_, kPlansIn),
                           text_of(target_, kPlansOut), text_of(target_, kPlansIn)));
      stop_those([](const Member&) { return true; });
      return;
    }
    stop_those([](const Member&) { return true; });
    run_for(Duration(kLease) * 2 + seconds(7));  // what is still on its way
    std::vector<Leg*> last;
    for (auto& leg : legs_) {
      if (!leg.superseded) last.push_back(&leg);
    }
    for (auto* const leg : last) {
      leg->fleet.longest_think = leg->fleet.longest_hold = milliseconds(10);
      take_each(*leg, Kind::target_only);
      take_each(*leg, Kind::worker);
    }
    for (auto& leg : legs_) leg.fleet.stopping = true;
    wait_until_idle(world_.now() + seconds(60));
    close_all(seconds(30));
  }

  void take_each(Leg& leg, Kind kind) {
    std::size_t next = 0;
    leg.fleet.grants.clear();
    leg.fleet.choose = [&leg, &next] { return leg.names[next++ % leg.names.size()]; };
    add(leg, kind);
    const auto wanted = [&] {
      return std::find_if(leg.names.begin(), leg.names.end(),
                          [&](const std::string& name) { return leg.fleet.grants[name] == 0; });
    };
    const auto patience = world_.now() + seconds(60);
    while (world_.now() < patience && wanted() != leg.names.end()) tick();
    if (const auto missing = wanted(); missing != leg.names.end()) {
      complain(fmt::format("'{}' cannot be had by {}", *missing,
                           kind == Kind::worker ? "the route" : "the target alone"));
    }
    leg.fleet.choose = [&leg] { return leg.names.front(); };
  }

  GateResult judge() {
    for (const auto& leg : legs_) {
      count(leg.fleet, result_);
      result_.names += leg.names.size();
    }
    for (const auto& rival : rivals_) {
      count(rival.fleet, result_);
      result_.refused_starts += rival.orders.refused;
    }
    result_.sealed_at_once = source_.sealed_at_once() + target_.sealed_at_once();
    MoveRun::judge(result_);
    return std::move(result_);
  }

  Server source_;
  Server target_;
  Server third_{false, 3000, true, {}};
  const Stop s_{"s", source_};
  const Stop t_{"t", target_};
  const Stop u_{"u", third_};
  Leg* chain_ = nullptr;  ///< the last plan of the first one's locks
  std::list<Leg> legs_;
  std::list<Leg> rivals_;
  std::list<Member> members_;
  bool returns_ = false;
  bool travels_ = false;
  bool meddles_ = false;
  Duration longest_think_{};
  int number_ = 0;
  int last_name_ = 0;
  GateResult result_;
};

}  // namespace

GateResult run_gate_fleet(std::uint64_t seed, bool tracing) { return GateRun(seed, tracing).go(); }

}  // namespace dlock::simulation::migration

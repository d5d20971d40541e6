// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/run.hpp"

#include <algorithm>
#include <list>
#include <set>

#include "tests/simulation/client.hpp"
#include "tests/simulation/fiber.hpp"
#include "tests/simulation/planted.hpp"
#include "tests/simulation/recorder.hpp"
#include "tests/simulation/verdict.hpp"

namespace dlock::simulation {
namespace {

class Run {
 public:
  explicit Run(const RunOptions& options)
      : way_(options.way), world_(options.seed, options.tracing), recorder_(world_), mail_(world_) {
    const auto* const with = way_.with;
    add_side(*options.kind, with != nullptr ? fmt::format("{}:", options.kind->name) : "");
    if (with != nullptr) add_side(*with, fmt::format("{}:", with->name));
    world_.on_step([this](Process& process) { recorder_.look_at(process); });
    for (auto& side : sides_) choose_faults(side);
    choose_work();
    work_.readers = way_.readers;
    if (way_.exports) work_.mail = &mail_;
    if (way_.several) choose_several();
    if (way_.permits) work_.permits = static_cast<std::uint32_t>(2 + world_.below(3));
    if (way_.cached) choose_cache();
  }

  RunResult go() {
    const auto began = world_.now();
    recorder_.faulted();
    const auto clients = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < clients; ++i) start_client();
    const auto begun = work_.enough * 6 / 10;
    while (recorder_.acquisitions() < begun && world_.now() < began + seconds(60)) tick();
    heal();
    work_.resting = true;
    const auto bound = longest(&SimStore::progress_bound);
    calm_ = world_.now() + bound;
    while (world_.now() < calm_) {
      // From then on a lock that nobody believes in is free.
      work_.may_export = world_.now() + bound / 2 < calm_;
      tick();
    }
    work_.resting = false;
    const auto enough = recorder_.acquisitions() + work_.enough * 3 / 10;
    const auto patience = world_.now() + bound + seconds(20);
    while (recorder_.acquisitions() < enough && world_.now() < patience) tick();
    stop_all();
    // Who wants several waits for one after the other, and each of them may be kept for long.
    const auto all_in_turn = static_cast<int>(clients_.size()) * work_.actors *
                             std::max(work_.longest_hold, work_.lease * 2);
    const auto end_of_patience = work_.several ? world_.now() + bound + all_in_turn : patience;
    while (!all_idle() && world_.now() < end_of_patience) tick();
    const auto end = world_.now();
    if (work_.several && !all_idle()) recorder_.wrong("some wait for each other for ever");
    RunResult result;
    result.violations = std::move(orphans_);
    close_all(result);
    result.acquisitions = recorder_.acquisitions();
    result.contended = recorder_.contended();
    result.adoptions = mail_.adoptions();
    result.simulated = world_.now() - began;
    result.faults = table_;
    result.lateness = recorder_.lateness();
    judge_all(end, result);
    const auto doubled = mail_.judge(recorder_.forgotten());
    result.violations.insert(result.violations.end(), doubled.begin(), doubled.end());
    result.trace = world_.trace_text();
    return result;
  }

 private:
  void add_side(const Kind& kind, const std::string& prefix) {
    auto& side = sides_.emplace_back(world_, kind, way_.exclusive, prefix);
    auto& store = *side.store;
    store.on_forgotten = [this, prefix](const std::string& lock, const std::string& owner,
                                        Fault cause) {
      recorder_.forgotten(prefix + lock, owner, cause);
    };
    store.on_made = [this](const std::string& owner, std::uint64_t token) {
      recorder_.made(owner, token);
    };
    store.on_broken = [this, prefix](const std::string& lock, const std::string& owner) {
      recorder_.broken(prefix + lock, owner, world_.now(), world_.now());
    };
    // Of Memcached an operator may break the lock of a new holder that has no token yet.
    store.on_taken_off = [this, &side](const std::string& lock, const std::string& owner) {
      bool broken = false;
      for (auto& client : clients_) {
        for (const auto& seat : client.seats()) {
          broken = broken || (&seat.side == &side && seat.breaking_until > world_.now());
        }
      }
      if (broken) recorder_.broken(side.prefix + lock, owner, world_.now(), world_.now());
    };
  }
  Duration longest(Duration (SimStore::*what)() const) const {
    Duration most{};
    for (const auto& side : sides_) most = std::max(most, ((*side.store).*what)());
    return most;
  }

  // A few kinds of faults again and again get to where all of them at random do not (Groce et al.,
  // Swarm Testing, 2012).
  void choose_faults(Side& side) {
    if (world_.chance(0.5)) return;
    std::vector<Fault> few;
    for (const auto fault : side.faults) {
      if (world_.chance(0.3)) few.push_back(fault);
    }
    if (!few.empty()) side.faults = std::move(few);
  }

  void choose_work() {
    work_.locks = {"orders/42"};
    if (world_.chance(0.3)) work_.locks.emplace_back("orders/42/lines");
    work_.actors = static_cast<int>(1 + world_.below(3));
    work_.lease = longest(&SimStore::lease);
    const Duration spans[] = {milliseconds(1), milliseconds(10), milliseconds(60)};
    work_.longest_think = spans[world_.below(3)];
    work_.longest_hold = spans[world_.below(3)];
    work_.enough = 50 + world_.below(80);
    const double rates[] = {0.01, 0.05, 0.15, 0.4};
    fault_rate_ = rates[world_.below(4)];
    if (!world_.chance(0.15)) return;
    // Holders who keep their locks for long, and renew them: what is wrong with a deadline shows.
    work_.longest_hold = work_.lease * 3;
    work_.enough = 20 + world_.below(20);
  }

  void choose_several() {
    work_.several = true;
    work_.locks = {"accounts/3", "accounts/7", "orders/42"};
    if (sides_.size() == 1) return;
    // One name stands in both stores.
    const auto& first = sides_.front().prefix;
    const auto& second = sides_.back().prefix;
    work_.locks = {first + "accounts/3", second + "accounts/7", first + "orders/42",
                   second + "orders/42"};
    work_.twins = {first + "orders/42", second + "orders/42"};
  }
  void choose_cache() {
    work_.cached = true;
    const Duration spans[] = {seconds(1), seconds(30), std::chrono::hours(1)};
    work_.keep.cache = spans[world_.below(3)];
    const unsigned cohorts[] = {0, 2, 8};
    work_.keep.cohort = cohorts[world_.below(3)];
  }

  void tick() {
    world_.run_until(world_.now() + milliseconds(50));
    look_for_orphans();
  }

  // What a process has in the store while its core keeps no claim for it any more: nobody takes
  // care of it. A request that is not answered holds the line up for a third of a lease, and late
  // copies are looked for in between. What comes out of a network that was cut for longer than a
  // lease is looked for no more, by design.
  void look_for_orphans() {
    if (is_broken()) return;  // what a store has lost and found again is nobody's
    std::map<std::string, TimePoint> seen;
    for (const auto& lock : work_.locks) {
      const auto& side = side_of(lock);
      for (const auto& owner : side.store->owners(side.name_of(lock))) {
        if (!is_orphan(owner)) continue;
        const auto before = orphaned_.find(owner);
        const auto since = before == orphaned_.end() ? world_.now() : before->second;
        seen[owner] = since;
        if (world_.now() - since == kOrphanPatience) {
          orphans_.push_back(
              {fmt::format("'{}' of {} is in the store, and nobody takes care of it", lock, owner),
               world_.now()});
        }
      }
    }
    orphaned_ = std::move(seen);
  }
  bool is_orphan(const std::string& owner) {
    for (auto& client : clients_) {
      for (auto& seat : client.seats()) {
        const auto found = seat.calls.claims.find(owner);
        if (found == seat.calls.claims.end()) continue;
        auto& process = client.process();
        const bool can_act = !process.is_paused() && !seat.side.network.is_cut(process);
        const bool has_had_time = world_.now() - last_fault_[&process] > milliseconds(1500);
        const bool was_cut = cut_.find(&process) != cut_.end();
        return can_act && has_had_time && !was_cut && found->second.expired();
      }
    }
    return false;
  }

  void start_client() {
    Process::Clock clock;
    // Together with a server's, well inside the drift margin of 1 %.
    clock.drift = (static_cast<double>(world_.below(601)) - 300) / 100'000;
    clock.wall_offset = milliseconds(static_cast<std::int64_t>(world_.below(20'000))) - seconds(10);
    auto& client = clients_.emplace_back(world_, recorder_, sides_, work_,
                                         fmt::format("p{}", clients_.size() + 1), clock);
    for (auto& seat : client.seats()) {
      seat.calls.on_begin = [this, &client, &seat](Call call, const std::string& lock) {
        return on_call(client, seat, call, lock);
      };
      seat.calls.on_gone = [this](const std::string& owner) { recorder_.gone(owner); };
    }
    client.start();
  }

  Blow on_call(Client& client, Seat& seat, Call call, const std::string& lock) {
    ++table_.called.at(static_cast<std::size_t>(call));
    if (is_healed_ || !client.process().is_alive()) return {};
    // Rare calls are struck as often as frequent ones.
    const bool rare = call != Call::claim && call != Call::wait && call != Call::release;
    if (!world_.chance(rare ? std::max(fault_rate_, 0.4) : fault_rate_)) return {};
    const auto fault = seat.side.faults[world_.below(seat.side.faults.size())];
    if (is_of_message(fault)) {
      seat.side.network.arm(client.process(), fault, [this, &client, &seat, fault] {
        last_fault_[&client.process()] = world_.now();
        table_.count(seat.calls.under_way, fault);
      });
      return {};
    }
    const auto when = world_.below(3);
    if (when != 0) {
      std::array<int, kCalls> only{};
      only.at(static_cast<std::size_t>(call)) = 1;
      return {when == 1 ? Blow::When::before : Blow::When::after,
              [this, &client, &seat, fault, lock, only] {
                strike(client, seat.side, fault, lock, only);
              }};
    }
    const auto soon = call == Call::wait ? milliseconds(100) : milliseconds(1);
    world_.after(world_.between({}, soon), [this, &client, &seat, fault, lock] {
      strike(client, seat.side, fault, lock, seat.calls.under_way);
    });
    return {};
  }

  void strike(Client& client, Side& side, Fault fault, const std::string& lock,
              const std::array<int, kCalls>& under_way) {
    auto& process = client.process();
    if (is_healed_ || !process.is_alive() || process.is_paused()) return;
    if (std::all_of(under_way.begin(), under_way.end(), [](int n) { return n == 0; })) return;
    if (is_of_process(fault)) {
      strike_process(client, side, fault);
    } else if (!side.store->strike(fault, process, lock.empty() ? first_of(side) : lock)) {
      return;
    }
    world_.trace("{}: {} strikes", process.name(), to_string(fault));
    table_.count(under_way, fault);
  }

  std::string first_of(const Side& side) const {
    const auto& locks = work_.locks;
    return side.name_of(*std::find_if(locks.begin(), locks.end(),
                                      [&side](const auto& lock) { return side.has(lock); }));
  }
  const Side& side_of(const std::string& lock) const {
    return *std::find_if(sides_.begin(), sides_.end(),
                         [&lock](const Side& side) { return side.has(lock); });
  }

  void strike_process(Client& client, Side& side, Fault fault) {
    auto& process = client.process();
    const auto lease = side.store->lease();
    const auto while_ = world_.chance(0.5) ? world_.between(milliseconds(5), milliseconds(300))
                                           : world_.between(milliseconds(300), lease * 2);
    switch (fault) {
      case Fault::client_paused:
        process.pause();
        world_.after(while_, [this, &process] {
          if (process.is_paused()) process.resume();
          last_fault_[&process] = world_.now();
        });
        break;
      case Fault::client_crashed:
        client.crash();
        world_.after(world_.between(milliseconds(1), seconds(1)), [this] {
          if (!is_healed_) start_client();
        });
        break;
      case Fault::client_clock_jump:
        process.jump_wall_clock(milliseconds(static_cast<std::int64_t>(world_.below(7'200'000))) -
                                std::chrono::hours(1));
        break;
      case Fault::client_cut:
        side.network.cut(process);
        cut_.insert(&process);
        world_.after(while_, [this, &side, &process] {
          side.network.mend(process);
          last_fault_[&process] = world_.now();
        });
        break;
      default:
        break;
    }
  }

  void heal() {
    is_healed_ = true;
    for (auto& client : clients_) {
      if (client.process().is_paused()) client.process().resume();
      for (auto& side : sides_) {
        side.network.mend(client.process());
        side.network.disarm(client.process());
      }
      last_fault_[&client.process()] = world_.now();
    }
    for (auto& side : sides_) side.store->heal();
    const bool nobody = std::none_of(clients_.begin(), clients_.end(),
                                     [](Client& client) { return client.process().is_alive(); });
    if (nobody) start_client();
    recorder_.healed();
  }

  std::set<Fault> struck() const {
    std::set<Fault> all;
    for (const auto& calls : table_.struck) {
      for (std::size_t fault = 0; fault < kFaults; ++fault) {
        if (calls.at(fault) > 0) all.insert(static_cast<Fault>(fault));
      }
    }
    return all;
  }
  /// The store's data, or its clock, went back.
  bool is_broken() const {
    if (way_.exclusive) return false;
    const auto all = struck();
    const auto has_struck = [&](Fault fault) { return all.find(fault) != all.end(); };
    const auto breaking = {Fault::server_restarted, Fault::server_emptied, Fault::failover,
                           Fault::evicted, Fault::server_clock_jump};
    return std::any_of(breaking.begin(), breaking.end(), has_struck);
  }

  void judge_all(TimePoint end, RunResult& result) {
    for (const auto& side : sides_) {
      const bool tokens_fall = is_broken() && side.store->tokens_fall(struck());
      judge({recorder_, *side.store, history_of(recorder_.history(), side.prefix), side.prefix,
             calm_, end, is_broken(), tokens_fall, way_.cached, work_.permits},
            result);
    }
    judge_telling(recorder_, end, result);
  }

  bool all_idle() {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](Client& client) { return client.is_idle(); });
  }
  void stop_all() {
    for (auto& client : clients_) client.stop();
  }
  void close_all(RunResult& result) {
    stop_all();
    for (auto& client : clients_) {
      if (client.process().is_alive()) client.close();
    }
    const auto patience = world_.now() + seconds(60);
    const auto all_closed = [this] {
      return std::all_of(clients_.begin(), clients_.end(),
                         [](Client& client) { return client.is_closed() && client.is_idle(); });
    };
    while (!all_closed() && world_.now() < patience) {
      world_.run_until(world_.now() + milliseconds(200));
    }
    if (!all_closed()) result.violations.push_back({"a store does not close", world_.now()});
    for (auto& client : clients_) {
      if (client.is_idle()) client.destroy();
    }
    world_.run_until(world_.now() + longest(&SimStore::longest_lease) * 2 + seconds(2));
    if (Fiber::alive() != 0) {
      result.violations.push_back({"a helper thread does not end", world_.now()});
    }
  }

  const Way way_;
  World world_;
  std::list<Side> sides_;
  Recorder recorder_;
  Mail mail_;
  Work work_;
  double fault_rate_ = 0;
  FaultTable table_;
  bool is_healed_ = false;
  TimePoint calm_{};
  static constexpr Duration kOrphanPatience = seconds(5);
  std::set<const Process*> cut_;                    ///< at any time
  std::map<const Process*, TimePoint> last_fault_;  ///< that it has to recover from
  std::map<std::string, TimePoint> orphaned_;       ///< owner ids, and since when
  checkers::Violations orphans_;
  std::list<Client> clients_;
};

}  // namespace

RunResult run(const RunOptions& options) {
  planted_defect = options.defect;
  Run one(options);
  auto result = one.go();
  planted_defect = {};
  return result;
}

}  // namespace dlock::simulation

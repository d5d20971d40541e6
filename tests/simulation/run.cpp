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
      : exclusive_(options.way.exclusive),
        world_(options.seed, options.tracing),
        network_(world_),
        store_(options.kind->make(world_, network_, options.way.exclusive)),
        recorder_(world_),
        mail_(world_) {
    store_->on_forgotten = [this](const std::string& lock, const std::string& owner, Fault cause) {
      recorder_.forgotten(lock, owner, cause);
    };
    store_->on_made = [this](const std::string& owner, std::uint64_t token) {
      recorder_.made(owner, token);
    };
    store_->on_broken = [this](const std::string& lock, const std::string& owner) {
      recorder_.broken(lock, owner, world_.now(), world_.now());
    };
    // Of Memcached an operator may break the lock of a new holder that has no token yet.
    store_->on_taken_off = [this](const std::string& lock, const std::string& owner) {
      const bool broken = std::any_of(clients_.begin(), clients_.end(), [this](Client& client) {
        return client.breaking_until() > world_.now();
      });
      if (broken) recorder_.broken(lock, owner, world_.now(), world_.now());
    };
    world_.on_step([this](Process& process) { recorder_.look_at(process); });
    faults_ = store_->faults();
    for (const auto fault :
         {Fault::client_paused, Fault::client_crashed, Fault::client_clock_jump}) {
      faults_.push_back(fault);
    }
    if (store_->has_network()) faults_.push_back(Fault::client_cut);
    choose_faults();
    choose_work();
    work_.readers = options.way.readers;
    if (options.way.exports) work_.mail = &mail_;
    if (options.way.several) {
      work_.several = true;
      work_.locks = {"accounts/3", "accounts/7", "orders/42"};
    }
    if (options.way.permits) work_.permits = static_cast<std::uint32_t>(2 + world_.below(3));
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
    calm_ = world_.now() + store_->progress_bound();
    while (world_.now() < calm_) {
      // From then on a lock that nobody believes in is free.
      work_.may_export = world_.now() + store_->progress_bound() / 2 < calm_;
      tick();
    }
    work_.resting = false;
    const auto enough = recorder_.acquisitions() + work_.enough * 3 / 10;
    const auto patience = world_.now() + store_->progress_bound() + seconds(20);
    while (recorder_.acquisitions() < enough && world_.now() < patience) tick();
    stop_all();
    // Who wants several waits for one after the other, and each of them may be kept for long.
    const auto all_in_turn = static_cast<int>(clients_.size()) * work_.actors *
                             std::max(work_.longest_hold, work_.lease * 2);
    const auto end_of_patience =
        work_.several ? world_.now() + store_->progress_bound() + all_in_turn : patience;
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
    const bool tokens_fall = is_broken() && store_->tokens_fall(struck());
    judge({recorder_, *store_, calm_, end, is_broken(), tokens_fall, work_.permits}, result);
    const auto doubled = mail_.judge(recorder_.forgotten());
    result.violations.insert(result.violations.end(), doubled.begin(), doubled.end());
    result.trace = world_.trace_text();
    return result;
  }

 private:
  // A few kinds of faults again and again get to where all of them at random do not (Groce et al.,
  // Swarm Testing, 2012).
  void choose_faults() {
    if (world_.chance(0.5)) return;
    std::vector<Fault> few;
    for (const auto fault : faults_) {
      if (world_.chance(0.3)) few.push_back(fault);
    }
    if (!few.empty()) faults_ = std::move(few);
  }

  void choose_work() {
    work_.locks = {"orders/42"};
    if (world_.chance(0.3)) work_.locks.emplace_back("orders/42/lines");
    work_.actors = static_cast<int>(1 + world_.below(3));
    work_.lease = store_->lease();
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
      for (const auto& owner : store_->owners(lock)) {
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
      const auto& claims = client.calls().claims;
      const auto found = claims.find(owner);
      if (found == claims.end()) continue;
      auto& process = client.process();
      const bool can_act = !process.is_paused() && !network_.is_cut(process);
      const bool has_had_time = world_.now() - last_fault_[&process] > milliseconds(1500);
      const bool was_cut = cut_.find(&process) != cut_.end();
      return can_act && has_had_time && !was_cut && found->second.expired();
    }
    return false;
  }

  void start_client() {
    Process::Clock clock;
    // Together with a server's, well inside the drift margin of 1 %.
    clock.drift = (static_cast<double>(world_.below(601)) - 300) / 100'000;
    clock.wall_offset = milliseconds(static_cast<std::int64_t>(world_.below(20'000))) - seconds(10);
    auto& client = clients_.emplace_back(world_, recorder_, *store_, work_,
                                         fmt::format("p{}", clients_.size() + 1), clock);
    client.calls().on_begin = [this, &client](Call call, const std::string& lock) {
      return on_call(client, call, lock);
    };
    client.calls().on_gone = [this](const std::string& owner) { recorder_.gone(owner); };
    client.start();
  }

  Blow on_call(Client& client, Call call, const std::string& lock) {
    ++table_.called.at(static_cast<std::size_t>(call));
    if (is_healed_ || !client.process().is_alive()) return {};
    // Rare calls are struck as often as frequent ones.
    const bool rare = call != Call::claim && call != Call::wait && call != Call::release;
    if (!world_.chance(rare ? std::max(fault_rate_, 0.4) : fault_rate_)) return {};
    const auto fault = faults_[world_.below(faults_.size())];
    if (is_of_message(fault)) {
      network_.arm(client.process(), fault, [this, &client, fault] {
        last_fault_[&client.process()] = world_.now();
        table_.count(client.calls().under_way, fault);
      });
      return {};
    }
    const auto when = world_.below(3);
    if (when != 0) {
      std::array<int, kCalls> only{};
      only.at(static_cast<std::size_t>(call)) = 1;
      return {when == 1 ? Blow::When::before : Blow::When::after,
              [this, &client, fault, lock, only] { strike(client, fault, lock, only); }};
    }
    const auto soon = call == Call::wait ? milliseconds(100) : milliseconds(1);
    world_.after(world_.between({}, soon), [this, &client, fault, lock] {
      strike(client, fault, lock, client.calls().under_way);
    });
    return {};
  }

  void strike(Client& client, Fault fault, const std::string& lock,
              const std::array<int, kCalls>& under_way) {
    auto& process = client.process();
    if (is_healed_ || !process.is_alive() || process.is_paused()) return;
    if (std::all_of(under_way.begin(), under_way.end(), [](int n) { return n == 0; })) return;
    const auto& about = lock.empty() ? work_.locks.front() : lock;
    if (is_of_process(fault)) {
      strike_process(client, fault);
    } else if (!store_->strike(fault, process, about)) {
      return;
    }
    world_.trace("{}: {} strikes", process.name(), to_string(fault));
    table_.count(under_way, fault);
  }

  void strike_process(Client& client, Fault fault) {
    auto& process = client.process();
    const auto lease = store_->lease();
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
        network_.cut(process);
        cut_.insert(&process);
        world_.after(while_, [this, &process] {
          network_.mend(process);
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
      network_.mend(client.process());
      network_.disarm(client.process());
      last_fault_[&client.process()] = world_.now();
    }
    store_->heal();
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
    if (exclusive_) return false;
    const auto all = struck();
    const auto has_struck = [&](Fault fault) { return all.find(fault) != all.end(); };
    const auto breaking = {Fault::server_restarted, Fault::server_emptied, Fault::failover,
                           Fault::evicted, Fault::server_clock_jump};
    return std::any_of(breaking.begin(), breaking.end(), has_struck);
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
    world_.run_until(world_.now() + store_->longest_lease() * 2 + seconds(2));
    if (Fiber::alive() != 0) {
      result.violations.push_back({"a helper thread does not end", world_.now()});
    }
  }

  const bool exclusive_;
  World world_;
  Network network_;
  std::unique_ptr<SimStore> store_;
  Recorder recorder_;
  Mail mail_;
  Work work_;
  std::vector<Fault> faults_;
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

// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/conductor.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <thread>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/soak/log.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::soak {
namespace {

using namespace std::chrono_literals;
using testkit::Process;

constexpr auto kBetweenFaults = 5s;

LockManager open_direct(const SoakStore& store) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(store.direct_url(), std::move(options));
}

class Conductor {
 public:
  Conductor(const SoakOptions& options, SoakStore& store, const Terms& terms)
      : options_(options), store_(store), terms_(terms), dice_(options.seed) {
    for (std::size_t slot = 0; slot < kWorkers; ++slot) start(slot);
    faults_ = store_.faults();
    faults_.push_back({"worker stopped", [this](Dice& dice) { stop_worker(dice() % kWorkers); },
                       [this] { resume_worker(); }, 0.2, 2.0});
    faults_.push_back({"worker killed", [this](Dice& dice) { kill_worker(dice() % kWorkers); },
                       [] {}, 0.0, 0.05});
    if (options_.only.empty()) return;
    std::erase_if(faults_, [&](const StoreFault& fault) { return fault.kind != options_.only; });
    if (faults_.empty()) throw std::invalid_argument("no fault here is called " + options_.only);
  }

  Records run() {
    const auto begin = BoottimeClock::now();
    const auto end = begin + options_.duration;
    everybody_gets_on("the start");
    auto next = begin + kBetweenFaults;
    while (true) {
      look_until(next);
      if (BoottimeClock::now() >= end) break;
      break_something();
      next = std::max(next + kBetweenFaults, BoottimeClock::now());
      say(begin);
    }
    finish();
    return std::move(records_);
  }

 private:
  struct Worker {
    int number = 0;
    std::unique_ptr<Process> process;
    std::unique_ptr<LogReader> log;
    TimePoint last_grant{};
  };

  void start(std::size_t slot) {
    auto& worker = workers_.at(slot);
    worker.number = ++last_number_;
    worker.last_grant = {};
    testkit::ProcessOptions process;
    process.argv = {options_.program,
                    "--worker",
                    std::to_string(worker.number),
                    "--url",
                    store_.url(slot),
                    "--folder",
                    folder_.path().string(),
                    "--seed",
                    std::to_string(options_.seed * 1000 + static_cast<unsigned>(worker.number)),
                    "--names",
                    std::to_string(options_.names),
                    "--lease",
                    std::to_string(store_.lease().count())};
    worker.process = std::make_unique<Process>(std::move(process));
    worker.log = std::make_unique<LogReader>(log_file(folder_.path().string(), worker.number));
  }

  /// Reads what the workers have written.
  void look() {
    for (auto& worker : workers_) read(worker);
  }
  void read(Worker& worker) {
    for (auto& line : worker.log->read()) {
      if (line.note == Note::granted) worker.last_grant = line.at;
      records_.lines[worker.number].push_back(std::move(line));
    }
    if (!worker.process->running() && !ending_) {
      throw std::runtime_error(fmt::format("worker {} ended by itself: {}", worker.number,
                                           worker.process->collected_stderr()));
    }
  }
  void look_until(TimePoint when) {
    while (BoottimeClock::now() < when) {
      std::this_thread::sleep_for(std::min<Duration>(when - BoottimeClock::now(), 50ms));
      look();
    }
  }

  void break_something() {
    auto& fault = faults_.at(dice_() % faults_.size());
    Struck struck;
    struck.kind = fault.kind;
    struck.from = BoottimeClock::now();
    fault.strike(dice_);
    const double leases = std::uniform_real_distribution<>(fault.shortest, fault.longest)(dice_);
    look_until(BoottimeClock::now() +
               std::chrono::duration_cast<Duration>(store_.lease() * leases));
    fault.heal();
    struck.to = BoottimeClock::now();
    records_.struck.push_back(std::move(struck));
    everybody_gets_on(fault.kind);
  }

  /// From now on every worker is granted something.
  void everybody_gets_on(const std::string& after_what) {
    const auto healed = BoottimeClock::now();
    const auto latest = healed + terms_.progress_bound;
    const auto all = [&] {
      look();
      return std::all_of(workers_.begin(), workers_.end(),
                         [&](const Worker& worker) { return worker.last_grant > healed; });
    };
    while (!all()) {
      if (BoottimeClock::now() > latest) {
        for (const auto& worker : workers_) {
          if (worker.last_grant > healed) continue;
          records_.seen.push_back(
              {fmt::format("worker {} was granted nothing for {} ms after: {}", worker.number,
                           terms_.progress_bound.count(), after_what),
               latest});
        }
        say_who_stands_where();
        break;
      }
      std::this_thread::sleep_for(2ms);
    }
    records_.progress.push_back(BoottimeClock::now() - healed);
  }

  /// For whoever has to find out why nobody goes on.
  void say_who_stands_where() {
    auto locks = open_direct(store_);
    for (int i = 0; i < options_.names; ++i) {
      const auto status = locks.status(lock_name(i));
      std::fprintf(stderr, "%s: held %d", lock_name(i).c_str(), status.held ? 1 : 0);
      if (status.owner)
        std::fprintf(stderr, " by pid %lld %s", static_cast<long long>(status.owner->pid),
                     status.owner->id.c_str());
      for (const auto& owner : status.waiting) {
        std::fprintf(stderr, ", waits pid %lld %s", static_cast<long long>(owner.pid),
                     owner.id.c_str());
      }
      std::fprintf(stderr, "\n");
    }
    for (const auto& worker : workers_) {
      std::fprintf(stderr, "worker %d is pid %d\n", worker.number, worker.process->pid());
      say_what_it_did(records_.lines[worker.number]);
    }
    std::fprintf(stderr, "%s\n", store_.what_servers_say().c_str());
  }

  static void say_what_it_did(const std::vector<Line>& lines) {
    constexpr std::size_t kLast = 40;
    const auto now = BoottimeClock::now();
    for (auto i = lines.size() - std::min(lines.size(), kLast); i < lines.size(); ++i) {
      const auto& line = lines[i];
      const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - line.at);
      std::fprintf(stderr, "  %lld ms ago actor %d: %s %s\n", static_cast<long long>(ago.count()),
                   line.actor, to_string(line.note), line.name.c_str());
    }
  }

  void stop_worker(std::size_t slot) {
    stopped_ = slot;
    auto& worker = workers_.at(slot);
    records_.stops.push_back({worker.number, BoottimeClock::now(), kNever});
    worker.process->pause();
  }
  void resume_worker() {
    workers_.at(stopped_).process->resume();
    records_.stops.back().to = BoottimeClock::now();
  }
  void kill_worker(std::size_t slot) {
    auto& worker = workers_.at(slot);
    records_.deaths.push_back({worker.number, BoottimeClock::now()});
    worker.process->kill_and_wait();
    ending_ = true;
    read(worker);
    ending_ = false;
    start(slot);
  }

  void finish() {
    ending_ = true;
    for (auto& worker : workers_) worker.process->close_stdin();
    for (auto& worker : workers_) {
      const auto status = worker.process->wait(testkit::patience());
      if (!status || !status->success()) {
        records_.seen.push_back(
            {fmt::format("worker {} did not end in order", worker.number), BoottimeClock::now()});
      }
      read(worker);
    }
    records_.end = BoottimeClock::now();
    for (int i = 0; i < options_.names; ++i) {
      records_.writes[lock_name(i)] = GuardedFile(folder_.path(), lock_name(i)).all();
    }
    expect_nothing_left();
  }

  void expect_nothing_left() {
    auto locks = open_direct(store_);
    const auto latest = testkit::within(store_.leftover_bound());
    for (int i = 0; i < options_.names; ++i) {
      LockStatus status;
      const bool free = testkit::eventually(latest, [&] {
        status = locks.status(lock_name(i));
        return !status.held && status.waiting.empty();
      });
      if (free) continue;
      records_.seen.push_back({fmt::format("when all have gone, {} is {} and {} wait", lock_name(i),
                                           status.held ? "held" : "free", status.waiting.size()),
                               records_.end});
    }
  }

  void say(TimePoint begin) const {
    std::size_t grants = 0;
    for (const auto& [worker, lines] : records_.lines) {
      for (const auto& line : lines) grants += line.note == Note::granted ? 1 : 0;
    }
    std::fprintf(stderr, "%s: %lld s, %zu acquisitions, after: %s, on after %lld ms\n",
                 options_.store.c_str(),
                 static_cast<long long>((BoottimeClock::now() - begin) / 1s), grants,
                 records_.struck.back().kind.c_str(),
                 static_cast<long long>(records_.progress.back() / 1ms));
  }

  const SoakOptions& options_;
  SoakStore& store_;
  const Terms& terms_;
  Dice dice_;
  testkit::TempDir folder_{"dlock-soak-logs"};
  std::array<Worker, kWorkers> workers_;
  int last_number_ = 0;
  std::vector<StoreFault> faults_;
  std::size_t stopped_ = 0;
  bool ending_ = false;
  Records records_;
};

}  // namespace

Records run_soak(const SoakOptions& options, SoakStore& store, const Terms& terms) {
  return Conductor(options, store, terms).run();
}

Terms terms_of(SoakStore& store) {
  auto locks = open_direct(store);
  const auto report = locks.inspect().front();
  if (!report.capabilities) throw std::runtime_error(report.message);
  Terms terms;
  terms.exclusive = report.capabilities->guarantee == Guarantee::exclusive;
  terms.has_lease = report.capabilities->lease_scope != LeaseScope::none;
  terms.excepted = store.excepted();
  terms.lease = store.lease();
  terms.progress_bound = store.progress_bound();
  if (terms.exclusive != terms.excepted.empty()) {
    throw std::runtime_error("the store declares another guarantee than the soak counts by");
  }
  return terms;
}

}  // namespace dlock::soak

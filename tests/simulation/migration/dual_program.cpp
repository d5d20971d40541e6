// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/dual_program.hpp"

#include <fmt/format.h>

#include "migration/dual/dual_acquisition.hpp"
#include "migration/dual/dual_coordinator.hpp"

namespace dlock::simulation::migration {
namespace {

namespace moving = core::migration;

/// Without what differs from run to run: of programs it names the pid.
std::string plain(const std::string& report) {
  std::string text;
  bool in_pid = false;
  for (std::size_t i = 0; i < report.size(); ++i) {
    if (i >= 5 && report.compare(i - 5, 5, "(pid ") == 0) in_pid = true;
    if (in_pid && (report[i] == ',' || report[i] == ')')) in_pid = false;
    if (!in_pid) text += report[i];
  }
  return text;
}

}  // namespace

struct DualProgram::Plans {
  moving::DualStores stores;
  std::shared_ptr<moving::Registrar> registrar;          ///< of a worker that takes part
  std::shared_ptr<moving::DualCoordinator> coordinator;  ///< of the command under way
};

DualProgram::DualProgram(World& world, Recorder& recorder, DualFleet& fleet, Part part,
                         std::string name, Process::Clock clock, const Places& places,
                         const Weather& weather)
    : FleetProgram(world, recorder, fleet, std::move(name), clock, places.source, places.target,
                   weather),
      fleet_(fleet),
      part_(part),
      window_(&places.window == &places.target
                  ? target_
                  : make_store(host_, "w", places.window, weather, &links_[2])),
      plans_(std::make_unique<Plans>()) {
  plans_->stores = {source_, target_, window_};
  if (is_worker() && phase_of(part.sort) >= 0) {
    plans_->registrar = std::make_shared<moving::Registrar>(
        plans_->stores, moving::Registrar::Settings{fleet.plan.name, phase_of(part.sort)});
  }
}

DualProgram::~DualProgram() = default;

asio::awaitable<void> DualProgram::live() { return is_worker() ? work_until_stopped() : operate(); }

void DualProgram::stop() {
  if (is_stopping()) return;
  world_.trace("{}: is to stop", process_.name());
  stopped_at_ = world_.now();
  if (plans_->coordinator) process_.deliver([it = plans_->coordinator] { it->stop(); });
}

void DualProgram::close() {
  spawn(end(), [this] { closed_ = true; });
}

// As a manager ends: first what rests on its stores, then these.
asio::awaitable<void> DualProgram::end() {
  if (plans_->registrar) plans_->registrar->close();
  if (plans_->coordinator) plans_->coordinator->stop();
  co_await source_->close();
  co_await target_->close();
  if (window_ != target_) co_await window_->close();
}

void DualProgram::cut(std::size_t which, Duration time) {
  links_.at(which).cut_until = world_.now() + time;
  world_.trace("{}: is cut off from store {}", process_.name(), which);
}

void DualProgram::mend() {
  for (auto& link : links_) link.cut_until = {};
}

asio::awaitable<void> DualProgram::work_until_stopped() {
  co_await work();
  if (stopped_at_ && process_.is_alive()) co_await end();
  if (stopped_at_) closed_ = true;
}

Sort DualProgram::seen_sort() const noexcept {
  if (!fleet_.leads_back) return part_.sort;
  return part_.sort == Sort::source   ? Sort::target_only
         : part_.sort == Sort::target ? Sort::legacy
                                      : part_.sort;
}

std::function<void()> DualProgram::acquire(const std::string& lock, Limits limits,
                                           detail::AcquireHandler done) {
  if (!plans_->registrar) {
    const bool waits = !limits.once && limits.deadline == kNever;
    if (waits) limits.deadline = process_.now() + seconds(5);
    acquire_in(part_.sort == Sort::legacy ? source_ : target_, lock, limits, std::move(done));
    return {};
  }
  moving::DualAcquisition::Request request;
  request.source = request_for(lock, limits);
  request.target = request_for(lock, limits);
  return canceller(
      moving::DualAcquisition::start(plans_->registrar, std::move(request), std::move(done)));
}

void DualProgram::on_granted(GrantId grant, const std::string&, const LockHandle&) {
  if (grant != 0) fleet_.facts->grants[grant] = {seen_sort(), process_.name()};
}

// What `dlock migrate` does, again and again, now and then against the present aim.
asio::awaitable<void> DualProgram::operate() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, milliseconds(1500)));
    if (ends() || fleet_.resting) continue;
    ++fleet_.commands;
    if (fleet_.is_rival) {
      co_await command_of_rival();
    } else {
      co_await command();
    }
    --fleet_.commands;
  }
  if (stopped_at_ && process_.is_alive()) co_await end();
}

asio::awaitable<void> DualProgram::command() {
  auto goal = fleet_.goal;
  if (goal != Goal::finish && world_.chance(0.15)) {
    goal = goal == Goal::advance ? Goal::rollback : Goal::advance;
  }
  moving::DualCoordinator::Options options;
  options.deadline = process_.now() + world_.between({}, seconds(25));
  // Who knows the target alone is refused until the end; who knows the source alone, the operator
  // has to end.
  options.legacy_gone = goal == Goal::rollback || fleet_.legacy_gone;
  const auto coordinator =
      std::make_shared<moving::DualCoordinator>(plans_->stores, fleet_.plan, options);
  plans_->coordinator = coordinator;
  moving::DualReport report;
  const bool again = world_.chance(0.05);
  if (!fleet_.started || fleet_.restore || again) {
    const bool was_finished = fleet_.is_finished && fleet_.is_finished();
    report = co_await coordinator->start(fleet_.restore);
    const bool done = report.verdict == moving::Verdict::done;
    fleet_.started = fleet_.started || done;
    if (done && was_finished) fleet_.finished_started_again = true;
  } else {
    report = co_await coordinator->take(goal == Goal::rollback ? goal : Goal::advance);
    // A start that was broken off: its window stands there, closed.
    if (report.window && !report.window->is_open())
      report = co_await coordinator->start(std::nullopt);
    const bool there = report.verdict == moving::Verdict::done && !report.changed;
    if (goal == Goal::finish && there) report = co_await coordinator->take(goal);
  }
  plans_->coordinator.reset();
  world_.trace("{}: {}: {}{} {}", process_.name(), static_cast<int>(goal),
               static_cast<int>(report.verdict), report.changed ? " changed" : "",
               plain(report.text));
}

// `start`, or `rollback --all --withdraw`; of what was broken off, `start` first, as that says.
asio::awaitable<void> DualProgram::command_of_rival() {
  if (fleet_.order == Order::nothing) co_return;
  moving::DualLedger ledger(plans_->stores);
  const auto found = co_await ledger.find(fleet_.plan.name);
  if (found.failure.error) co_return;
  auto plan = found.plan && found.started ? *found.plan : fleet_.plan;
  if (!found.plan || !found.started) plan.id = fmt::format("{:016x}", world_.random());
  moving::DualCoordinator::Options options;
  options.deadline = process_.now() + world_.between({}, seconds(10));
  options.legacy_gone = true;
  const auto coordinator =
      std::make_shared<moving::DualCoordinator>(plans_->stores, std::move(plan), options);
  plans_->coordinator = coordinator;
  moving::DualReport report;
  const bool starts = !found.started || !found.window;
  if (starts) {
    std::optional<std::pair<int, int>> at;
    if (found.started) at.emplace(0, 0);
    report = co_await coordinator->start(at);
    if (report.verdict == moving::Verdict::refused) ++fleet_.refused;
  } else if (fleet_.order == Order::withdraw) {
    report = co_await coordinator->withdraw();
  }
  plans_->coordinator.reset();
  world_.trace("{}: {} {}: {} {}", process_.name(), starts ? "start" : "withdraw", fleet_.plan.name,
               static_cast<int>(report.verdict), plain(report.text));
}

}  // namespace dlock::simulation::migration

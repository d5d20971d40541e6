// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/leased_program.hpp"

#include "migration/leased/leased_acquisition.hpp"
#include "migration/leased/leased_coordinator.hpp"

namespace dlock::simulation::migration {

namespace moving = core::migration;

LeasedProgram::LeasedProgram(World& world, Recorder& recorder, LeasedFleet& fleet, Role role,
                             std::string name, Process::Clock clock, const Places& places,
                             const Weather& weather)
    : FleetProgram(world, recorder, fleet, std::move(name), clock, places.source, places.target,
                   weather),
      fleet_(fleet),
      role_(role),
      gate_(&places.gate == &places.target
                ? target_
                : make_store(host_, "w", places.gate, weather, &links_[2])),
      reader_(std::make_shared<moving::GateReader>(moving::LeasedStores{source_, target_, gate_},
                                                   fleet.plan.name)) {}

LeasedProgram::~LeasedProgram() = default;

asio::awaitable<void> LeasedProgram::live() {
  if (role_ == Role::operators) {
    co_await operate();
  } else {
    co_await work();
  }
  if (is_stopping_ && process_.is_alive()) co_await end();
  if (is_stopping_) closed_ = true;
}

void LeasedProgram::close() {
  spawn(end(), [this] { closed_ = true; });
}

asio::awaitable<void> LeasedProgram::end() {
  reader_->close();
  if (coordinator_) coordinator_->stop();
  co_await source_->close();
  co_await target_->close();
  if (gate_ != target_) co_await gate_->close();
}

void LeasedProgram::cut(std::size_t which, Duration time) {
  links_.at(which).cut_until = world_.now() + time;
  world_.trace("{}: is cut off from store {}", process_.name(), which);
}

void LeasedProgram::mend() {
  for (auto& link : links_) link.cut_until = {};
}

std::function<void()> LeasedProgram::acquire(const std::string& lock, Limits limits,
                                             detail::AcquireHandler done) {
  if (role_ != Role::worker) {
    const bool waits = !limits.once && limits.deadline == kNever;
    if (waits) limits.deadline = process_.now() + seconds(5);
    acquire_in(role_ == Role::legacy ? source_ : target_, lock, limits, std::move(done));
    return {};
  }
  moving::LeasedHold::Requests requests;
  requests.reader = reader_;
  requests.source = request_for(lock, limits);
  requests.target = request_for(lock, limits);
  return canceller(moving::LeasedAcquisition::start(std::move(requests), std::move(done)));
}

void LeasedProgram::on_granted(GrantId grant, const std::string&, const LockHandle& handle) {
  if (grant == 0) return;
  fleet_.facts.grants[grant] = {process_.name(), handle.store() == fleet_.plan.from,
                                role_ == Role::legacy, role_ == Role::worker};
  holds_[grant] = core::HandleAccess::hold(handle);
  world_.trace("{}: grant {} is shown by '{}'", process_.name(), grant, handle.store());
}

void LeasedProgram::each_hold(
    const std::function<void(GrantId, bool in_source, bool in_target)>& call) {
  if (!process_.is_alive()) return;
  std::erase_if(holds_, [](const auto& one) { return one.second.expired(); });
  for (const auto& [grant, weak] : holds_) {
    const auto hold = weak.lock();
    if (!hold || hold->has_ended() || hold->until() <= process_.now()) continue;
    const auto leased = std::dynamic_pointer_cast<moving::LeasedHold>(hold->dependency());
    if (leased) {
      const auto [in_source, in_target] = leased->places();
      call(grant, in_source, in_target);
    } else {
      call(grant, role_ == Role::legacy, role_ == Role::target_only);
    }
  }
}

// What `dlock migrate` does, again and again, sometimes against the present aim.
asio::awaitable<void> LeasedProgram::operate() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, milliseconds(1500)));
    if (ends() || fleet_.resting) continue;
    ++fleet_.commands;
    co_await command();
    --fleet_.commands;
  }
}

asio::awaitable<void> LeasedProgram::command() {
  auto goal = fleet_.goal;
  if (goal != Goal::finish && world_.chance(0.15)) {
    goal = goal == Goal::advance ? Goal::rollback : Goal::advance;
  }
  moving::LeasedCoordinator::Options options;
  options.deadline = process_.now() + world_.between({}, seconds(20));
  options.legacy_gone = fleet_.legacy_gone;
  const auto coordinator = std::make_shared<moving::LeasedCoordinator>(
      moving::LeasedStores{source_, target_, gate_}, fleet_.plan, options);
  coordinator_ = coordinator;
  moving::LeasedReport report;
  if (!fleet_.started || fleet_.restore || world_.chance(0.05)) {
    report = co_await coordinator->start(fleet_.restore);
    fleet_.started = fleet_.started || report.verdict == moving::Verdict::done;
  } else {
    report = co_await coordinator->take(goal == Goal::rollback ? goal : Goal::advance);
    const bool is_there = report.verdict == moving::Verdict::done;
    if (goal == Goal::finish && is_there) report = co_await coordinator->take(goal);
  }
  coordinator_.reset();
  world_.trace("{}: {}: {}{} {}", process_.name(), static_cast<int>(goal),
               static_cast<int>(report.verdict), report.changed ? " changed" : "", report.text);
}

}  // namespace dlock::simulation::migration

// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/dual_program.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

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
    : world_(world),
      recorder_(recorder),
      fleet_(fleet),
      part_(part),
      process_(world, std::move(name), clock),
      host_(std::make_shared<SimHost>(process_)),
      source_(make_store(host_, fleet.plan.from, places.source, weather, &links_[0])),
      target_(make_store(host_, fleet.plan.to, places.target, weather, &links_[1])),
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

void DualProgram::start() {
  ++running_;
  asio::co_spawn(process_.executor(), is_worker() ? work() : operate(),
                 [this](const std::exception_ptr&) { --running_; });
}

void DualProgram::stop() {
  if (is_stopping()) return;
  world_.trace("{}: is to stop", process_.name());
  stopped_at_ = world_.now();
  if (plans_->coordinator) process_.deliver([it = plans_->coordinator] { it->stop(); });
}

void DualProgram::crash() {
  if (!process_.is_alive()) return;
  recorder_.died(process_);
  process_.crash();
  if (process_.is_paused()) process_.resume();
  close();
}

void DualProgram::close() {
  ++running_;
  asio::co_spawn(process_.executor(), end(), [this](const std::exception_ptr&) {
    --running_;
    closed_ = true;
  });
}

// As a manager ends: first what rests on its stores, then these.
asio::awaitable<void> DualProgram::end() {
  if (plans_->registrar) plans_->registrar->close();
  if (plans_->coordinator) plans_->coordinator->stop();
  for (auto store : {source_, target_}) co_await store->close();
  if (window_ != target_) co_await window_->close();
}

void DualProgram::cut(std::size_t which, Duration time) {
  links_.at(which).cut_until = world_.now() + time;
  world_.trace("{}: is cut off from store {}", process_.name(), which);
}

void DualProgram::mend() {
  for (auto& link : links_) link.cut_until = {};
}

asio::awaitable<void> DualProgram::work() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, fleet_.longest_think));
    if (ends()) break;
    const auto& names = fleet_.plan.names;
    auto lock = names[world_.below(names.size())];
    co_await use(std::move(lock));
  }
  if (stopped_at_ && process_.is_alive()) co_await end();
  if (stopped_at_) closed_ = true;
}

asio::awaitable<void> DualProgram::use(std::string lock) {
  const auto wanted = want(lock);
  auto outcome = co_await wanted.get_until(kNever);
  if (outcome->ec) {
    recorder_.given_up(process_, process_.name(), lock);
    world_.trace("{}: no '{}': {}", process_.name(), lock, outcome->ec.message());
    const auto& ec = outcome->ec;
    // Not tried again at once.
    if (ec == errc::window_closed || ec == errc::not_registered || ec == errc::config_unsafe) {
      co_await sleep_until(process_, process_.now() + milliseconds(300));
    }
    co_return;
  }
  co_await sleep_until(process_, process_.now() + hold_time());
  auto& handle = outcome->handle;
  if (handle.state() == HandleState::lost) {
    if (!*outcome->told_lost) recorder_.told_lost(process_, outcome->grant);
    *outcome->told_lost = true;
  } else {
    recorder_.releasing(process_, outcome->grant);
  }
  OneShot<bool> done(process_);
  handle.start_release([done](error_code) { done.set(true); });
  co_await done.get_until(kNever);
}

Sort DualProgram::seen_sort() const noexcept {
  if (!fleet_.leads_back) return part_.sort;
  return part_.sort == Sort::source   ? Sort::target_only
         : part_.sort == Sort::target ? Sort::legacy
                                      : part_.sort;
}

Duration DualProgram::hold_time() {
  const bool long_work = world_.chance(fleet_.long_works);
  return world_.between({}, long_work ? fleet_.long_work : fleet_.longest_hold);
}

core::Acquisition::Request DualProgram::request_for(const std::string& lock,
                                                    const core::Store& store) {
  core::Acquisition::Request request;
  request.name = lock;
  request.limits.connect_timeout = store.setup().settings.connect_timeout;
  request.limits.retry = store.setup().settings.retry;
  return request;
}

OneShot<DualProgram::Outcome> DualProgram::want(const std::string& lock) {
  OneShot<Outcome> done(process_);
  recorder_.wanted(process_, process_.name(), lock);
  const auto how = world_.below(8);
  auto limits = request_for(lock, *source_).limits;
  limits.once = how == 0;
  if (how == 1) limits.deadline = process_.now() + world_.between(milliseconds(5), kLease);
  if (!plans_->registrar) {
    const auto& store = part_.sort == Sort::legacy ? source_ : target_;
    auto request = request_for(lock, *store);
    request.limits = limits;
    if (!limits.once && how != 1) request.limits.deadline = process_.now() + seconds(5);
    store->acquire(std::make_shared<core::Acquisition>(store, request, record_outcome(lock, done)));
    return done;
  }
  moving::DualAcquisition::Request request;
  request.source = request_for(lock, *source_);
  request.target = request_for(lock, *target_);
  request.source.limits = limits;
  request.target.limits = limits;
  const auto acquisition = moving::DualAcquisition::start(plans_->registrar, std::move(request),
                                                          record_outcome(lock, done));
  if (how == 2) {
    process_.call_at(process_.now() + world_.between({}, kLease),
                     [weak = std::weak_ptr(acquisition)] {
                       if (const auto alive = weak.lock()) alive->cancel();
                     });
  }
  return done;
}

detail::AcquireHandler DualProgram::record_outcome(const std::string& lock, OneShot<Outcome> done) {
  return [this, lock, done](error_code ec, LockHandle handle) {
    Outcome outcome;
    outcome.ec = ec;
    outcome.told_lost = std::make_shared<bool>(false);
    if (!ec) {
      outcome.grant =
          recorder_.granted(process_, process_.name(), lock, core::HandleAccess::hold(handle));
      if (outcome.grant != 0) {
        fleet_.facts->grants[outcome.grant] = {seen_sort(), process_.name()};
      }
      handle.on_state(
          [this, told = outcome.told_lost, grant = outcome.grant](HandleState state, LossReason) {
            if (state != HandleState::lost || *told) return;
            *told = true;
            recorder_.told_lost(process_, grant);
          });
    }
    outcome.handle = std::move(handle);
    done.set(std::move(outcome));
  };
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
    report = co_await coordinator->start(fleet_.restore);
    const bool done = report.verdict == moving::Verdict::done;
    fleet_.started = fleet_.started || done;
    if (done && report.window && report.window->finished) fleet_.finished_started_again = true;
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

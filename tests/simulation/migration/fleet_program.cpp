// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/fleet_program.hpp"

#include <boost/asio/co_spawn.hpp>

namespace dlock::simulation::migration {
namespace {

/// A configuration that does not fit, or a gate that is not there, is not tried again at once.
bool is_for_later(const error_code& ec) {
  return ec == errc::moving || ec == errc::config_unsafe || ec == errc::no_gate;
}

}  // namespace

FleetProgram::FleetProgram(World& world, Recorder& recorder, FleetState& state, std::string name,
                           Process::Clock clock, Server& source, Server& target,
                           const Weather& weather)
    : world_(world),
      recorder_(recorder),
      process_(world, std::move(name), clock),
      host_(std::make_shared<SimHost>(process_)),
      source_(make_store(host_, state.plan.from, source, weather, &links_[0])),
      target_(make_store(host_, state.plan.to, target, weather, &links_[1])),
      state_(state) {}

void FleetProgram::spawn(asio::awaitable<void> what, std::function<void()> then) {
  ++running_;
  asio::co_spawn(process_.executor(), std::move(what),
                 [this, then = std::move(then)](const std::exception_ptr&) {
                   --running_;
                   if (then) then();
                 });
}

void FleetProgram::crash() {
  if (!process_.is_alive()) return;
  recorder_.died(process_);
  process_.crash();
  if (process_.is_paused()) process_.resume();
  close();
}

asio::awaitable<void> FleetProgram::work() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, state_.longest_think));
    if (ends()) break;
    auto lock = state_.choose();
    co_await use(std::move(lock));
  }
}

asio::awaitable<void> FleetProgram::use(std::string lock) {
  const auto wanted = want(lock);
  auto outcome = co_await wanted.get_until(kNever);
  if (outcome->ec) {
    recorder_.given_up(process_, process_.name(), lock);
    world_.trace("{}: no '{}': {}", process_.name(), lock, outcome->ec.message());
    if (is_for_later(outcome->ec)) {
      co_await sleep_until(process_, process_.now() + milliseconds(300));
    }
    co_return;
  }
  const bool long_work = world_.chance(state_.long_works);
  const auto longest = long_work ? state_.long_work : state_.longest_hold;
  co_await sleep_until(process_, process_.now() + world_.between({}, longest));
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

OneShot<FleetProgram::Outcome> FleetProgram::want(const std::string& lock) {
  OneShot<Outcome> done(process_);
  recorder_.wanted(process_, process_.name(), lock);
  const auto how = world_.below(8);
  Limits limits;
  limits.connect_timeout = source_->setup().settings.connect_timeout;
  limits.retry = source_->setup().settings.retry;
  limits.once = how == 0;
  if (how == 1) limits.deadline = process_.now() + world_.between(milliseconds(5), kLease);
  auto cancel = acquire(lock, limits, record_outcome(lock, done));
  if (how == 2 && cancel) {
    process_.call_at(process_.now() + world_.between({}, kLease), std::move(cancel));
  }
  return done;
}

detail::AcquireHandler FleetProgram::record_outcome(const std::string& lock,
                                                    OneShot<Outcome> done) {
  return [this, lock, done](error_code ec, LockHandle handle) {
    Outcome outcome;
    outcome.ec = ec;
    outcome.told_lost = std::make_shared<bool>(false);
    if (!ec) {
      outcome.grant =
          recorder_.granted(process_, process_.name(), lock, core::HandleAccess::hold(handle));
      on_granted(outcome.grant, lock, handle);
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

core::Acquisition::Request FleetProgram::request_for(const std::string& lock, Limits limits) {
  core::Acquisition::Request request;
  request.name = lock;
  request.limits = limits;
  return request;
}

void FleetProgram::acquire_in(const std::shared_ptr<core::Store>& store, const std::string& lock,
                              Limits limits, detail::AcquireHandler done) {
  store->acquire(
      std::make_shared<core::Acquisition>(store, request_for(lock, limits), std::move(done)));
}

}  // namespace dlock::simulation::migration

// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/program.hpp"

#include <boost/asio/co_spawn.hpp>

#include "migration/ledger.hpp"

namespace dlock::simulation::migration {

Program::Program(World& world, Recorder& recorder, Fleet& fleet, Kind kind, std::string name,
                 Server& source, Server& target, const Weather& weather)
    : FleetProgram(world, recorder, fleet, std::move(name), {}, source, target, weather),
      fleet_(fleet),
      kind_(kind) {
  if (fleet.plan.has_gate()) {
    gate_ = std::make_shared<core::migration::GateBelief>(fleet.plan.name);
  }
}

asio::awaitable<void> Program::live() { return kind_ == Kind::operators ? operate() : work(); }

void Program::close() {
  for (const auto& store : {source_, target_}) {
    asio::co_spawn(process_.executor(), store->close(), [](const std::exception_ptr&) {});
  }
}

std::function<void()> Program::acquire(const std::string& lock, Limits limits,
                                       detail::AcquireHandler done) {
  if (kind_ != Kind::worker) {
    // Whoever meets a sealed lock is told at once; whoever does not must not wait for ever.
    if (!limits.once) limits.deadline = process_.now() + seconds(5);
    acquire_in(kind_ == Kind::source_only ? source_ : target_, lock, limits, std::move(done));
    return {};
  }
  core::migration::MigratingAcquisition::Request request;
  request.source = request_for(lock, limits);
  request.target = request_for(lock, limits);
  request.plan = fleet_.plan.name;
  request.poll = milliseconds(400);
  request.stores = {"s", "t", "u"};
  request.gate = gate_;
  return canceller(core::migration::MigratingAcquisition::start(
      source_, target_, std::move(request), std::move(done)));
}

void Program::on_granted(GrantId grant, const std::string& lock, const LockHandle& handle) {
  fleet_.stores[grant] = handle.store();
  world_.trace("{}: grant {} is in '{}'", process_.name(), grant, handle.store());
  ++fleet_.grants[lock];
  if (kind_ == Kind::source_only) ++fleet_.source_only_grants;
  if (kind_ == Kind::target_only) ++fleet_.target_only_grants;
}

asio::awaitable<void> Program::operate() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, milliseconds(800)));
    if (ends()) break;
    if (fleet_.command) {
      Command command{source_, target_, process_};
      auto work = fleet_.command(std::move(command));
      co_await std::move(work);
    } else {
      co_await take_a_name();
    }
  }
}

// What `dlock migrate` does, again and again, now and then against the present aim.
asio::awaitable<void> Program::take_a_name() {
  auto goal = fleet_.goal;
  if (goal != Goal::finish && world_.chance(0.15)) {
    goal = goal == Goal::advance ? Goal::rollback : Goal::advance;
  }
  core::migration::Coordinator::Options options;
  options.deadline = process_.now() + world_.between({}, seconds(8));
  const auto coordinator =
      std::make_shared<core::migration::Coordinator>(source_, target_, fleet_.plan, options);
  const auto& names = fleet_.plan.names;
  auto name = names[world_.below(names.size())];
  const auto report = co_await coordinator->take(goal, name);
  world_.trace("{}: {} '{}': {} {}", process_.name(), static_cast<int>(goal), name,
               static_cast<int>(report.verdict), report.text);
  // As the refusal says: a late command has taken it back meanwhile.
  if (goal == Goal::finish && report.verdict == core::migration::Verdict::refused) {
    co_await coordinator->take(Goal::advance, name);
  }
  if (!fleet_.certify || ends()) co_return;
  core::migration::Ledger ledger(source_, target_);
  co_await ledger.certify(fleet_.plan);
}

}  // namespace dlock::simulation::migration

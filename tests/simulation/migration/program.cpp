// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/program.hpp"

#include <boost/asio/co_spawn.hpp>

namespace dlock::simulation::migration {

Program::Program(World& world, Recorder& recorder, Fleet& fleet, Kind kind, std::string name,
                 Server& source, Server& target, const Weather& weather)
    : FleetProgram(world, recorder, fleet, std::move(name), {}, source, target, weather),
      fleet_(fleet),
      kind_(kind),
      gate_(std::make_shared<core::migration::GateBelief>(fleet.plan.name)) {}

asio::awaitable<void> Program::live() { return kind_ == Kind::operators ? operate() : work(); }

void Program::close() {
  for (const auto& store : {source_, target_}) {
    asio::co_spawn(process_.executor(), store->close(), [](const std::exception_ptr&) {});
  }
}

std::function<void()> Program::acquire(const std::string& lock, Limits limits,
                                       detail::AcquireHandler done) {
  if (kind_ != Kind::worker) {
    // A sealed lock refuses these programs at once. For any other lock they have a deadline.
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
    Command command{source_, target_, process_};
    auto work = fleet_.command(std::move(command));
    co_await std::move(work);
  }
}

}  // namespace dlock::simulation::migration

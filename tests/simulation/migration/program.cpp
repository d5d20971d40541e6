// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/program.hpp"

#include <boost/asio/co_spawn.hpp>

#include "migration/ledger.hpp"

namespace dlock::simulation::migration {

Program::Program(World& world, Recorder& recorder, Fleet& fleet, Kind kind, std::string name,
                 Server& source, Server& target, const Weather& weather)
    : world_(world),
      recorder_(recorder),
      fleet_(fleet),
      kind_(kind),
      process_(world, std::move(name), {}),
      host_(std::make_shared<SimHost>(process_)),
      source_(make_store(host_, fleet.plan.from, source, weather)),
      target_(make_store(host_, fleet.plan.to, target, weather)) {
  if (fleet.plan.has_gate()) {
    gate_ = std::make_shared<core::migration::GateBelief>(fleet.plan.name);
  }
}

void Program::start() {
  ++running_;
  asio::co_spawn(process_.executor(), kind_ == Kind::operators ? operate() : work(),
                 [this](const std::exception_ptr&) { --running_; });
}

void Program::crash() {
  if (!process_.is_alive()) return;
  recorder_.died(process_);
  process_.crash();
  if (process_.is_paused()) process_.resume();
  close();
}

void Program::close() {
  for (const auto& store : {source_, target_}) {
    asio::co_spawn(process_.executor(), store->close(), [](const std::exception_ptr&) {});
  }
}

asio::awaitable<void> Program::work() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between({}, fleet_.longest_think));
    if (ends()) break;
    const auto& names = fleet_.plan.names;
    auto lock = fleet_.choose ? fleet_.choose() : names[world_.below(names.size())];
    co_await use(std::move(lock));
  }
}

asio::awaitable<void> Program::use(std::string lock) {
  const auto wanted = want(lock);
  auto outcome = co_await wanted.get_until(kNever);
  if (outcome->ec) {
    recorder_.given_up(process_, process_.name(), lock);
    // A configuration that does not fit is not tried again at once.
    if (outcome->ec == errc::moving || outcome->ec == errc::config_unsafe) {
      co_await sleep_until(process_, process_.now() + milliseconds(300));
    }
    co_return;
  }
  const bool long_work = world_.chance(0.1);
  co_await sleep_until(
      process_,
      process_.now() + world_.between({}, long_work ? Duration(kLease) * 2 : fleet_.longest_hold));
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

core::Acquisition::Request Program::request_for(const std::string& lock, const core::Store& store) {
  core::Acquisition::Request request;
  request.name = lock;
  request.limits.connect_timeout = store.setup().settings.connect_timeout;
  request.limits.retry = store.setup().settings.retry;
  return request;
}

OneShot<Program::Outcome> Program::want(const std::string& lock) {
  OneShot<Outcome> done(process_);
  recorder_.wanted(process_, process_.name(), lock);
  const auto how = world_.below(8);
  auto limits = request_for(lock, *source_).limits;
  limits.once = how == 0;
  if (how == 1) limits.deadline = process_.now() + world_.between(milliseconds(5), kLease);
  if (kind_ != Kind::worker) {
    // Whoever meets a sealed lock is told at once; whoever does not must not wait for ever.
    const auto& store = kind_ == Kind::source_only ? source_ : target_;
    auto request = request_for(lock, *store);
    request.limits = limits;
    if (!limits.once) request.limits.deadline = process_.now() + seconds(5);
    store->acquire(std::make_shared<core::Acquisition>(store, request, record_outcome(lock, done)));
    return done;
  }
  core::migration::MigratingAcquisition::Request request;
  request.source = request_for(lock, *source_);
  request.target = request_for(lock, *target_);
  request.source.limits = limits;
  request.target.limits = limits;
  request.plan = fleet_.plan.name;
  request.poll = milliseconds(400);
  request.stores = {"s", "t", "u"};
  request.gate = gate_;
  const auto moving = core::migration::MigratingAcquisition::start(
      source_, target_, std::move(request), record_outcome(lock, done));
  if (how == 2) {
    process_.call_at(process_.now() + world_.between({}, kLease), [weak = std::weak_ptr(moving)] {
      if (const auto alive = weak.lock()) alive->cancel();
    });
  }
  return done;
}

detail::AcquireHandler Program::record_outcome(const std::string& lock, OneShot<Outcome> done) {
  return [this, lock, done](error_code ec, LockHandle handle) {
    Outcome outcome;
    outcome.ec = ec;
    outcome.told_lost = std::make_shared<bool>(false);
    if (!ec) {
      outcome.grant =
          recorder_.granted(process_, process_.name(), lock, core::HandleAccess::hold(handle));
      fleet_.stores[outcome.grant] = handle.store();
      world_.trace("{}: grant {} is in '{}'", process_.name(), outcome.grant, handle.store());
      ++fleet_.grants[lock];
      if (kind_ == Kind::source_only) ++fleet_.source_only_grants;
      if (kind_ == Kind::target_only) ++fleet_.target_only_grants;
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

// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation {

using checkers::EventKind;

void Recorder::add(checkers::Event event) {
  event.at = world_.now();
  history_.push_back(std::move(event));
}

void Recorder::wanted(const Process& who, const std::string& actor, const std::string& lock) {
  if (!who.is_alive()) return;
  world_.trace("{}: wants '{}'", actor, lock);
  const bool contended = interested_[lock]++ > 0;
  wanting_[actor] = {lock, contended};
  actors_[&who].insert(actor);
  checkers::Event event;
  event.kind = EventKind::wanted;
  event.name = lock;
  event.client = actor;
  add(std::move(event));
}

void Recorder::given_up(const Process& who, const std::string& actor, const std::string& lock) {
  if (!who.is_alive()) return;
  world_.trace("{}: gives up '{}'", actor, lock);
  --interested_[lock];
  wanting_.erase(actor);
  checkers::Event event;
  event.kind = EventKind::given_up;
  event.name = lock;
  event.client = actor;
  add(std::move(event));
}

TimePoint Recorder::deadline_of(Process& who, core::Hold& hold) const {
  const auto left = hold.remaining();
  return left ? who.to_world(who.now() + *left) : kNever;
}

GrantId Recorder::granted(Process& who, const std::string& actor, const std::string& lock,
                          const std::shared_ptr<core::Hold>& hold) {
  if (!who.is_alive()) return 0;
  const auto id = ++last_grant_;
  if (wanting_[actor].contended) ++contended_;
  wanting_.erase(actor);
  checkers::Event event;
  event.kind = EventKind::granted;
  event.name = lock;
  event.client = actor;
  event.grant = id;
  event.token = hold->identity().token;
  event.mode = hold->identity().mode;
  event.permits = hold->identity().permits;
  event.until = deadline_of(who, *hold);
  const auto claim = hold->claim();
  owners_[id] = claim ? claim->request().owner.id : std::string();
  world_.trace("{}: granted '{}' to {} as {} with token {} for {} ms", actor, lock, owners_[id], id,
               event.token.value_or(0),
               event.until == kNever ? -1 : (event.until - world_.now()) / milliseconds(1));
  live_[id] = {&who, lock, hold, event.until, false};
  add(std::move(event));
  return id;
}

void Recorder::became_reader(const Process& who, GrantId grant) {
  if (!who.is_alive() || live_.find(grant) == live_.end()) return;
  world_.trace("{}: is a reader from now on, {}", who.name(), grant);
  checkers::Event event;
  event.kind = EventKind::shared;
  event.grant = grant;
  add(std::move(event));
}

void Recorder::releasing(const Process& who, GrantId grant) {
  const auto found = live_.find(grant);
  if (!who.is_alive() || found == live_.end()) return;
  world_.trace("{}: releases {}", who.name(), grant);
  --interested_[found->second.lock];
  live_.erase(found);
  checkers::Event event;
  event.kind = EventKind::releasing;
  event.grant = grant;
  add(std::move(event));
}

// Not filtered by what is alive here: told twice, or after the release, is for the checker to see.
void Recorder::told_lost(const Process& who, GrantId grant, LossReason why) {
  if (!who.is_alive() || grant == 0) return;
  world_.trace("{}: told that {} is lost", who.name(), grant);
  if (const auto found = live_.find(grant); found != live_.end()) {
    const auto until = found->second.until;
    // Nobody can be told while it is stopped.
    const bool could_be_told = who.resumed() < until && !who.is_paused();
    if (until != kNever && could_be_told) lateness_.push_back(world_.now() - until);
    --interested_[found->second.lock];
    live_.erase(found);
  }
  checkers::Event event;
  event.kind = EventKind::told_lost;
  event.grant = grant;
  event.is_broken = why == LossReason::broken;
  add(std::move(event));
}

void Recorder::dropped(const Process& who, GrantId grant) {
  if (!who.is_alive() || grant == 0) return;
  world_.trace("{}: drops {}", who.name(), grant);
  checkers::Event event;
  event.kind = EventKind::dropped;
  event.grant = grant;
  add(std::move(event));
}

void Recorder::died(const Process& who) {
  world_.trace("{}: dies", who.name());
  std::erase_if(live_, [&](const auto& entry) {
    if (entry.second.process != &who) return false;
    --interested_[entry.second.lock];
    return true;
  });
  for (const auto& actor : actors_[&who]) {
    if (const auto found = wanting_.find(actor); found != wanting_.end()) {
      --interested_[found->second.lock];
      wanting_.erase(found);
    }
    checkers::Event event;
    event.kind = EventKind::died;
    event.client = actor;
    add(std::move(event));
  }
}

void Recorder::gone(const std::string& owner_id) {
  for (auto& [id, live] : live_) {
    if (owners_.at(id) == owner_id) live.gone = true;
  }
}

void Recorder::faulted() {
  checkers::Event event;
  event.kind = EventKind::faulted;
  add(std::move(event));
}

void Recorder::healed() {
  world_.trace("everything is whole again");
  checkers::Event event;
  event.kind = EventKind::healed;
  add(std::move(event));
}

void Recorder::forgotten(const std::string& lock, const std::string& owner_id, Fault cause) {
  world_.trace("the store forgets '{}' of {}: {}", lock, owner_id, to_string(cause));
  forgotten_.push_back({world_.now(), world_.now(), lock, owner_id, cause});
}

void Recorder::broken(const std::string& lock, const std::string& owner_id, TimePoint begun,
                      TimePoint by, bool is_certain) {
  world_.trace("an operator {} '{}' of {}", is_certain ? "breaks" : "may have broken", lock,
               owner_id);
  forgotten_.push_back({begun, by, lock, owner_id, Fault::deleted, is_certain});
}

void Recorder::write(GrantId grant, const std::string& lock, std::uint64_t token) {
  auto& highest = highest_[lock];
  const bool accepted = token >= highest;
  highest = std::max(highest, token);
  writes_[lock].push_back({world_.now(), grant, token, accepted});
}

void Recorder::look_at(Process& who) {
  for (auto& [id, live] : live_) {
    if (live.process != &who) continue;
    if (live.gone && !who.is_paused()) {
      violations_.push_back(
          {fmt::format("grant {} is gone by an answered renewal, and nobody is told", id),
           world_.now()});
      live.gone = false;
    }
    const auto hold = live.hold.lock();
    if (!hold || hold->remaining() == Duration::zero()) continue;
    const auto until = deadline_of(who, *hold);
    // What the clock's rounding moves is no news.
    if (until == live.until ||
        (until < live.until + microseconds(10) && live.until < until + microseconds(10))) {
      continue;
    }
    live.until = until;
    checkers::Event event;
    event.kind = EventKind::extended;
    event.grant = id;
    event.until = until;
    add(std::move(event));
  }
}

}  // namespace dlock::simulation

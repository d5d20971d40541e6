// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong with the simulated Redis' servers.
#include <algorithm>

#include "tests/simulation/redis/sim_redis.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr milliseconds kShortestOutage{50};
constexpr milliseconds kLongestOutage{2000};
constexpr milliseconds kLongestLoading{300};

}  // namespace

std::vector<Fault> SimRedis::faults() const {
  std::vector<Fault> all{Fault::request_lost, Fault::reply_lost, Fault::request_late,
                         Fault::reply_late,   Fault::duplicated, Fault::reset_before,
                         Fault::reset_after,  Fault::overtaken,  Fault::server_restarted,
                         Fault::deleted};
  if (exclusive_) return all;
  for (const auto fault :
       {Fault::server_emptied, Fault::failover, Fault::evicted, Fault::server_clock_jump}) {
    all.push_back(fault);
  }
  return all;
}

bool SimRedis::strike(Fault fault, Process&, const std::string& lock) {
  switch (fault) {
    case Fault::server_restarted:
      return restart(
          fault, exclusive_ ? primary_->keys().all()
                            : history_.at(world_.now() - std::min<Duration>(lag(), seconds(1))));
    case Fault::server_emptied:
      return restart(fault, {});
    case Fault::failover:
      return fail_over();
    case Fault::evicted:
      return evict(lock);
    case Fault::deleted:
      return remove(lock);
    case Fault::server_clock_jump:
      return jump_clock();
    default:
      return false;
  }
}

Duration SimRedis::lag() {
  const auto by_chance = world_.between({}, History::kDepth);
  return std::exchange(next_lag, std::nullopt).value_or(by_chance);
}

bool SimRedis::restart(Fault cause, Snapshot left) {
  if (!is_up()) return false;
  end_deposed();
  const auto before = primary_;
  primary_ = std::make_shared<Server>(world_, settings(), Lineage{make_run_id(world_)});
  primary_->set_clock_offset(before->clock_offset());
  primary_->keys().replace(std::move(left));
  history_ = {};
  for (const auto& [key, entry] : primary_->keys().all()) history_.note({}, key, &entry);
  watch(primary_);
  address_->server = nullptr;
  before->disconnect_all();
  const auto outage = world_.between(kShortestOutage, kLongestOutage);
  world_.trace("redis: {}, down for {} ms", to_string(cause),
               std::chrono::duration_cast<milliseconds>(outage).count());
  starting_ = world_.after(outage, [this] { start(); });
  audit(cause);
  return true;
}

void SimRedis::start() {
  starting_ = 0;
  address_->server = primary_;
  if (world_.chance(0.3)) {
    primary_->load_until(world_.now() + world_.between({}, kLongestLoading));
  }
  world_.trace("redis: up");
}

// The replica has what the primary had a moment ago. A client of the old one may continue to use it
// until it learns that it is not the primary any more. With a proxy between them a client continues
// on the new one at once, and its connection does not show it.
bool SimRedis::fail_over() {
  if (!is_up() || deposed_) return false;
  const auto behind = lag();
  deposed_ = primary_;
  primary_ = std::make_shared<Server>(world_, settings(),
                                      Lineage{make_run_id(world_), deposed_->lineage().id});
  primary_->set_clock_offset(deposed_->clock_offset());
  primary_->keys().replace(history_.at(world_.now() - behind));
  history_ = {};
  for (const auto& [key, entry] : primary_->keys().all()) history_.note({}, key, &entry);
  watch(primary_);
  address_->server = primary_;
  const bool hidden = std::exchange(next_hidden, std::nullopt).value_or(world_.chance(0.3));
  const bool lingers = !hidden && world_.chance(0.4);
  world_.trace("redis: failover to a replica that is {} ms behind{}{}",
               std::chrono::duration_cast<milliseconds>(behind).count(),
               lingers ? "; the old primary lingers" : "",
               hidden ? "; a proxy keeps the connections" : "");
  if (hidden) primary_->take_over(*deposed_);
  if (lingers) {
    const auto time = world_.between(milliseconds(100), milliseconds(2000));
    deposing_ = world_.after(time, [this] { end_deposed(); });
  } else {
    end_deposed();
  }
  audit(Fault::failover);
  return true;
}

void SimRedis::end_deposed() {
  world_.cancel(std::exchange(deposing_, 0));
  if (const auto old = std::exchange(deposed_, nullptr)) old->disconnect_all();
}

void SimRedis::take(const std::string& key) {
  striking_ = true;
  primary_->keys().remove(key, primary_->now_ms());
  striking_ = false;
}

bool SimRedis::evict(const std::string& lock) {
  if (!is_up()) return false;
  const auto keys = names_.keys(lock);
  std::vector<std::string> there;
  for (const auto& key : {keys.lock, keys.fence, keys.queue, keys.alive, keys.next}) {
    if (primary_->keys().find(key, primary_->now_ms()) != nullptr) there.push_back(key);
  }
  if (there.empty()) return false;
  const auto& victim = there[world_.below(there.size())];
  world_.trace("redis: evicts {}", victim);
  take(victim);
  audit(Fault::evicted);
  return true;
}

bool SimRedis::remove(const std::string& lock) {
  const auto key = names_.key(lock);
  if (!is_up() || primary_->keys().find(key, primary_->now_ms()) == nullptr) return false;
  world_.trace("redis: an operator removes {}", key);
  take(key);
  audit(Fault::deleted);
  return true;
}

bool SimRedis::jump_clock() {
  const auto by = std::chrono::duration_cast<milliseconds>(
      world_.between(-Duration(kLongestJump), Duration(kLongestJump)));
  step_clock(by);
  return true;
}

// A server does not wait for a look to drop what has expired: a clock that goes back must not bring
// it to life again.
void SimRedis::step_clock(milliseconds by) {
  world_.trace("redis: the server's clock jumps by {} ms", by.count());
  set_back_ = std::max(Duration::zero(), set_back_ - by);
  striking_ = true;
  for (auto* server : {primary_.get(), deposed_.get()}) {
    if (server == nullptr) continue;
    server->keys().sweep(server->now_ms());
    server->set_clock_offset(server->clock_offset() + by);
  }
  striking_ = false;
  audit(Fault::server_clock_jump);
}

void SimRedis::heal() {
  end_deposed();
  if (!is_up()) {
    world_.cancel(starting_);
    start();
  }
  primary_->load_until({});
}

}  // namespace dlock::simulation::redis

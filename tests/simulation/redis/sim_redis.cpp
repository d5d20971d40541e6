// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/sim_redis.hpp"

#include <algorithm>

#include "backends/redis/backend.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/rules/hand_over.hpp"
#include "backends/redis/rules/poll.hpp"
#include "backends/redis/rules/readers.hpp"
#include "backends/redis/rules/value.hpp"
#include "core/config/options.hpp"
#include "dlock/redis.hpp"

namespace dlock::simulation {

std::unique_ptr<SimStore> make_redis(World& world, Network& network, bool exclusive) {
  // Short leases end often; what stays behind by mistake shows under long ones.
  const milliseconds lease = world.chance(0.5) ? seconds(3) : seconds(10);
  auto store = std::make_unique<redis::SimRedis>(world, network, exclusive, lease);
  store->fair = world.chance(0.3);
  return store;
}

namespace redis {
SimRedis::SimRedis(World& world, Network& network, bool exclusive, milliseconds lease)
    : world_(world),
      network_(network),
      exclusive_(exclusive),
      lease_(lease),
      names_(options().string("key")) {
  primary_ = std::make_shared<Server>(world_, settings(), Lineage{make_run_id(world_)});
  watch(primary_);
  address_->server = primary_;
}

SimRedis::~SimRedis() {
  world_.cancel(starting_);
  world_.cancel(deposing_);
}

const BackendDescriptor& SimRedis::descriptor() const { return production::backend(); }

StoreOptions SimRedis::options() const {
  StoreOptions options;
  options.name = "redis";
  options.scheme = "redis";
  options.endpoints.push_back({"simulated", 6379});
  options.app = "simulation";
  for (const auto& spec : production::backend().options) {
    core::apply_option(spec, spec.default_value, options);
  }
  options.number["lease"] = lease_.count();
  options.number["poll"] = poll.count();
  if (fair) options.number["fair"] = 1;
  return options;
}

ServerSettings SimRedis::settings() const {
  if (exclusive_) return {};
  ServerSettings settings;
  settings.eviction_policy = "volatile-lru";
  settings.fsync = "everysec";
  settings.replicas = 1;
  return settings;
}

std::unique_ptr<Backend> SimRedis::make_backend(Process& process, EventSink& sink) {
  auto client = std::make_shared<Client>(Client{process, network_});
  clients_.push_back(client);
  auto settings = production::dial_settings(options());
  settings.open_stream = [client, address = std::weak_ptr(address_)](
                             Env&, std::shared_ptr<const production::DialSettings> dialled,
                             std::shared_ptr<production::DialStop> stop, TimePoint deadline) {
    return open_simulated(client, address, std::move(dialled), std::move(stop), deadline);
  };
  return std::make_unique<production::RedisBackend>(options(), std::move(settings), process, sink);
}

void SimRedis::watch(const std::shared_ptr<Server>& server) {
  server->keys().on_change = [this, to = server.get()](const std::string& key, const Entry* entry) {
    on_change(*to, key, entry);
  };
  server->on_served = [this](std::string_view what, std::size_t bytes) {
    if (on_command) on_command(what, bytes);
  };
  // In time: a command may be about to grant what has just expired too early.
  server->before_command = [this] {
    if (shortened_) audit(*shortened_);
  };
}

std::vector<Promises::Holder> SimRedis::holders(Server& server, const std::string& lock) const {
  const auto* entry = server.keys().find(names_.key(lock), server.now_ms());
  const auto* value = entry != nullptr ? std::get_if<std::string>(&entry->value) : nullptr;
  if (value == nullptr || value->starts_with(production::kRecordPrefix)) return {};
  std::vector<Promises::Holder> all;
  if (const auto readers = production::read_readers(*value)) {
    for (const auto& one : *readers) {
      if (one.till > server.now_ms())
        all.push_back({one.owner.id, server.world_time(one.till), one.broken.has_value()});
    }
    return all;
  }
  const auto until = entry->expires_ms ? server.world_time(*entry->expires_ms) : kNever;
  const auto read = production::read_value(*value);
  all.push_back({read.owner.id, until, read.broken.has_value()});
  return all;
}

std::uint64_t SimRedis::token_of(const std::string& text, const std::string& owner_id) {
  const auto readers = production::read_readers(text);
  if (!readers) return production::read_value(text).token.value_or(0);
  for (const auto& one : *readers) {
    if (one.owner.id == owner_id) return one.token;
  }
  return 0;
}

void SimRedis::on_change(Server& server, const std::string& key, const Entry* entry) {
  const bool counts = &server == primary_.get();
  // What a fault has taken, and its holder has been given up for, does not come back with an older
  // state of the data.
  if (counts && striking_) history_.forget(key);
  if (counts && !striking_) history_.note(world_.now(), key, entry);
  const auto lock = names_.name(key);
  if (striking_ || !lock) return;
  const auto now = holders(server, *lock);
  if (counts) note_broken(server, *lock, now);
  // The mark of a break keeps the expiry. It makes no promise, and it must not shorten one that the
  // data of a restarted server have forgotten.
  for (const auto& one : now) {
    if (!one.marked) promises_.made(*lock, one);
  }
  // Who waits on may be handed the lock again, that it had without hearing of it.
  for (const auto& one : now) {
    if (!counts || forgotten_.erase(one.owner_id) == 0) continue;
    on_made(one.owner_id, token_of(std::get<std::string>(entry->value), one.owner_id));
  }
  if (counts) return promises_.settled(*lock, now);
  // What a deposed server grants or renews, the new one does not know.
  if (now.empty()) promises_.settled(*lock, holders(*primary_, *lock));
  audit(Fault::failover);
}

// The key beside the lock names each holder that an operator breaks, at once or later.
void SimRedis::note_broken(Server& server, const std::string& lock,
                           const std::vector<Promises::Holder>& left) {
  const auto* entry = server.keys().find(names_.key(lock) + "%broken", server.now_ms());
  const auto* text = entry != nullptr ? std::get_if<std::string>(&entry->value) : nullptr;
  if (text == nullptr) return;
  for (const auto& owner_id : promises_.ended_early(lock, left, world_.now())) {
    if (text->find(owner_id) == std::string::npos) continue;
    forgotten_.insert(owner_id);
    on_broken(lock, owner_id);
  }
}

void SimRedis::audit(Fault cause) {
  const auto found = promises_.audit(
      world_.now(), [this](const std::string& lock) { return holders(*primary_, lock); });
  for (const auto& [lock, owner_id] : found.broken) {
    world_.trace("redis: has forgotten {} of {} ({})", lock, owner_id, to_string(cause));
    forgotten_.insert(owner_id);
    on_forgotten(lock, owner_id, cause);
  }
  const bool watched = shortened_.has_value();
  shortened_ = found.again ? std::optional(cause) : std::nullopt;
  if (!found.again || watched) return;
  world_.at(*found.again, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || !shortened_) return;
    const auto since = *std::exchange(shortened_, std::nullopt);
    audit(since);
  });
}

void SimRedis::on_crash(Process& process) {
  std::erase_if(clients_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : clients_) {
    const auto client = weak.lock();
    if (client && &client->process == &process) client->crashed = true;
  }
  for (auto* server : {primary_.get(), deposed_.get()}) {
    if (server == nullptr) continue;
    for (const auto& [id, session] : server->sessions()) {
      if (session->is_of(process)) session->hang_up_later(network_.latency());
    }
  }
}

checkers::Belongings SimRedis::belongings() const {
  checkers::Belongings all;
  for (const auto& [key, entry] : primary_->keys().all()) {
    if (primary_->keys().find(key, primary_->now_ms()) != nullptr) all.keys.insert(key);
  }
  all.watches = primary_->subscriptions();
  return all;
}

std::vector<std::string> SimRedis::owners(const std::string& lock) const {
  // A waiter's entry delays nobody, and may come in late and stay.
  std::vector<std::string> all;
  for (auto& one : holders(*primary_, lock)) all.push_back(std::move(one.owner_id));
  return all;
}

Duration SimRedis::lease() const { return lease_; }

// Tokens follow the server's clock and what it knows: one of the two is enough. But older data may
// bring a lock back whose grant was never heard of, and with it its token.
bool SimRedis::tokens_fall(const std::set<Fault>& struck) const {
  if (struck.contains(Fault::server_restarted) || struck.contains(Fault::failover)) return true;
  return struck.contains(Fault::server_clock_jump) &&
         (struck.contains(Fault::server_emptied) || struck.contains(Fault::evicted));
}

// A record stands for as long as its migration; a note for ever.
bool SimRedis::is_permitted(const std::string& key) const {
  if (key.ends_with("%fence") || key.ends_with("%note")) return true;
  if (key.ends_with("%permits")) return true;  // its limit stays
  const auto* entry = primary_->keys().find(key, primary_->now_ms());
  const auto* value = entry != nullptr ? std::get_if<std::string>(&entry->value) : nullptr;
  return value != nullptr && value->starts_with(production::kRecordPrefix);
}

// The queue of a lock expires last: twice the patience with a waiter that does not look any more.
// A clock that was set back keeps everything for that much longer.
// What was to end soon ends by so much later; and the clock may go back once more.
Duration SimRedis::longest_set_back() const {
  return exclusive_ ? Duration::zero() : set_back_ + kLongestJump;
}

Duration SimRedis::longest_lease() const {
  return 2 * production::waiter_patience(poll) + longest_set_back();
}

// What may stand in the way of a waiter, one after the other: a dial to a server that did not
// answer (5 s) and the backoff after it (1 s); the core's own pause before it tries again (3 s); a
// dead holder's lease; a reservation for a waiter that is gone (0.5 s), and there may be a few; two
// probations of successors that have not heard of it; and the longest pause between two looks, five
// times the poll interval. A server's clock that was set back adds that much to a dead holder's
// lease.
Duration SimRedis::progress_bound() const {
  const Duration reach = seconds(5) + seconds(1) + seconds(3);
  const Duration jump = exclusive_ ? Duration::zero() : Duration(kLongestJump);
  return reach + Duration(lease_) + jump + 4 * milliseconds(500) + 2 * production::kProbation +
         5 * poll;
}

// Somebody who is woken, or handed it, and has given up meanwhile, twice on end; a look at last.
Duration SimRedis::calm_bound() const { return 2 * production::kProbation + 5 * poll; }

}  // namespace redis
}  // namespace dlock::simulation

// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/guarantee.hpp"

#include <fmt/format.h>

namespace dlock::redis {
namespace {

using Shortfall = Capabilities::Shortfall;

void check_eviction(const ServerFacts& facts, std::vector<Shortfall>& shortfalls) {
  if (!facts.info_known) {
    shortfalls.push_back({"the server does not report its settings (INFO is not allowed)",
                          "ACL SETUSER <user> +info"});
  } else if (facts.eviction_policy != "noeviction") {
    shortfalls.push_back(
        {fmt::format("maxmemory-policy is {}: a full server drops locks that are held",
                     facts.eviction_policy.empty() ? "unknown" : facts.eviction_policy),
         "CONFIG SET maxmemory-policy noeviction"});
  }
}

void check_durability(const ServerFacts& facts, bool declared, std::vector<Shortfall>& shortfalls) {
  if (!facts.info_known && declared) return;
  if (facts.info_known && !facts.append_only) {
    shortfalls.push_back({"appendonly is no: a restart forgets locks that are held",
                          "appendonly yes and appendfsync always in redis.conf"});
    return;
  }
  if (facts.append_broken) {
    shortfalls.push_back({"the last write to the append-only file failed",
                          "check the server's log and its disk (aof_last_write_status)"});
  }
  if (!facts.fsync) {
    if (declared) return;
    shortfalls.push_back(
        {"appendfsync is unknown (CONFIG GET is not allowed)",
         "ACL SETUSER <user> +config|get, or declare durability=appendfsync-always here"});
    return;
  }
  if (*facts.fsync != "always") {
    shortfalls.push_back(
        {fmt::format("appendfsync is {}: a power cut forgets the last grants", *facts.fsync),
         "CONFIG SET appendfsync always"});
  }
  if (facts.no_fsync_on_rewrite.value_or("no") != "no") {
    shortfalls.push_back({"no-appendfsync-on-rewrite is yes: nothing is fsynced during a rewrite",
                          "CONFIG SET no-appendfsync-on-rewrite no"});
  }
}

void check_replicas(const ServerFacts& facts, std::vector<Shortfall>& shortfalls) {
  if (facts.replicas == 0) return;
  shortfalls.push_back(
      {fmt::format("{} replica(s): replication is asynchronous, and a promoted one may not know "
                   "locks that are held",
                   facts.replicas),
       "a server without replicas for the locks"});
}

/// A record does not expire, so only a policy that evicts any key drops it.
void check_records(const ServerFacts& facts, bool declared, std::vector<Shortfall>& losses) {
  if (!facts.info_known || facts.eviction_policy.starts_with("allkeys")) {
    check_eviction(facts, losses);
  }
  check_durability(facts, declared, losses);
  check_replicas(facts, losses);
}

void add_notes(const ServerFacts& facts, const Declaration& declaration, Capabilities& all) {
  if (facts.info_known) {
    all.notes.push_back(
        fmt::format("server version {}, {}", facts.version, facts.replica ? "replica" : "master"));
    all.notes.push_back(fmt::format("maxmemory-policy {}, appendonly {}, appendfsync {}",
                                    facts.eviction_policy, facts.append_only ? "yes" : "no",
                                    facts.fsync.value_or("not told")));
  }
  if (declaration.fsync_always_declared) {
    all.notes.emplace_back(facts.fsync ? "durability=appendfsync-always is declared; the server's "
                                         "own word counts"
                                       : "durability=appendfsync-always is the operator's "
                                         "declaration, not the server's word");
  }
  if (declaration.lock_delay.count() > 0) {
    all.notes.push_back(
        fmt::format("lock_delay {} ms: for that time after a loss no client is granted the lock",
                    declaration.lock_delay.count()));
  }
  if (all.wake_up == WakeUp::poll) {
    all.notes.push_back(fmt::format(
        "waiters poll: {} is not allowed; ACL SETUSER <user> +subscribe +publish &dlock:wake:*",
        facts.publish_refused.empty() ? "SUBSCRIBE" : "PUBLISH"));
  }
  if (declaration.fair) {
    all.notes.emplace_back(
        all.fair ? "fair=true: waiters acquire in the order of arrival, if all clients set it"
                 : "fair=true, but a polling waiter acquires at the time of its poll");
  }
}

}  // namespace

Capabilities declare(const ServerFacts& facts, const Declaration& declaration) {
  Capabilities all;
  check_eviction(facts, all.shortfalls);
  check_durability(facts, declaration.fsync_always_declared, all.shortfalls);
  check_replicas(facts, all.shortfalls);
  all.guarantee = all.shortfalls.empty() ? Guarantee::exclusive : Guarantee::best_effort;
  all.assumptions = {
      {"server_clock_not_stepped",
       "nobody sets the server's wall clock: leases end by it, and tokens come from it"},
      {"clock_rate_bounded",
       "the clocks of holder and server run equally fast, within the drift margin"},
      {"settings_kept", "eviction, persistence and replication stay as they were inspected"},
      {"keys_not_removed", "nobody flushes the server or deletes keys of locks by hand"},
  };
  if (!facts.fsync && declaration.fsync_always_declared) {
    all.assumptions.push_back(
        {"durability_declared",
         "the operator declares that every write is fsynced before it is answered"});
  }
  if (!all.shortfalls.empty()) {
    all.assumptions.push_back(
        {"restarts_noticed",
         "no proxy hides a restart of the server that takes less than half a second: it may forget "
         "the last grants, and the next token could be lower"});
  }
  all.shared_mode = true;
  all.permits = true;
  const bool polls = declaration.wake_up_denied || !facts.publish_refused.empty();
  all.fair = declaration.fair && !polls;
  all.token = TokenStrength::time_seeded;
  all.wake_up = polls ? WakeUp::poll : WakeUp::push;
  all.lease_scope = LeaseScope::claim;
  all.lease = declaration.lease;
  all.shortest_lease = declaration.shortest_lease;
  all.longest_lease = declaration.longest_lease;
  all.can_list = true;
  all.can_evict = true;
  all.can_tell_contention = !polls;
  all.can_bound_queue = true;
  all.can_head_start = true;
  all.can_ask = !polls;
  all.can_adopt = true;
  all.can_raise = true;
  all.can_seal = true;
  all.can_gate = true;  // a cluster, where the gate can be on another server, is refused
  check_records(facts, declaration.fsync_always_declared, all.record_losses);
  add_notes(facts, declaration, all);
  return all;
}

}  // namespace dlock::redis

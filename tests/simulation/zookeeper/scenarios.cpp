// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a few chosen events, whatever their moments.
#include "tests/simulation/scenario.hpp"

#include "tests/simulation/records.hpp"
#include "tests/simulation/zookeeper/bench.hpp"
#include "tests/simulation/zookeeper/counter_scenarios.hpp"

namespace dlock::simulation {
namespace {

constexpr auto kLock = "orders/42";

ensemble::Settings settings_of(std::uint64_t seed) {
  return {.tick = milliseconds(seed % 2 == 0 ? 1000 : 750), .sync_limit = 10};
}

/// Something holds the holder's packets or its replies back, or it stands still; then a cut.
bool told_too_late(std::uint64_t seed) {
  EnsembleBench bench(seed, settings_of(seed));
  auto& world = bench.world;
  auto& servers = bench.store.servers();
  const bool on_leader = world.chance(0.3);
  const int server = (servers.leader() + (on_leader ? 0 : 1)) % ensemble::Ensemble::kServers;
  const auto fault = [&](Program& a) {
    const auto session = bench.store.session_of(a.process);
    const auto how = world.below(4);
    if (how == 0) {
      a.process.pause();
      bench.run(world.between(milliseconds(100), milliseconds(1900)));
    } else if (how < 3) {
      bench.network.arm(a.process, how == 1 ? Fault::request_late : Fault::reply_late, [] {});
      bench.run(world.between(milliseconds(500), milliseconds(2500)));
    }
    if (on_leader || world.chance(0.3)) {
      servers.cut(server, seconds(60));
      if (on_leader) servers.leave_leader(server);
    } else {
      servers.cut_after_write(session, seconds(60));
    }
    a.process.resume();
  };
  const auto before = told_before(bench, server, kLock, fault);
  return before && *before <= Duration{};
}

bool granted_behind_a_waiter(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto held = bench.program("a").acquire(kLock);
  if (!bench.granted(held)) return false;
  auto gives_up = bench.program("b").acquire(kLock, milliseconds(2000));
  bench.run(seconds(1));
  auto waits = bench.program("c").acquire(kLock);
  bench.run(seconds(5));
  return gives_up->told && waits->told && !waits->ec;
}

bool token_falls(std::uint64_t seed) {
  EnsembleBench bench(seed);
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    // Each time another one: who knows a higher token takes no lower one.
    auto& a = bench.program(std::string(1, static_cast<char>('a' + i)));
    auto held = a.acquire(kLock);
    if (!bench.granted(held)) return false;
    const auto token = *held->handle.token();
    if (token <= last) return true;
    last = token;
    a.release(held);
    bench.run(i == 0 ? seconds(1) : seconds(12));
  }
  return false;
}

/// After `trouble` with a's release, or whatever it did: does the next one get the lock?
bool stuck_after(EnsembleBench& bench, const std::function<void(Program&)>& trouble) {
  auto& a = bench.program("a");
  if (!bench.warm_up(a, kLock)) return false;
  trouble(a);
  bench.run(seconds(12));
  auto next = bench.program("z").acquire(kLock);
  return !bench.granted(next, seconds(20));
}

bool stuck_after_hand_over(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  auto& b = bench.program("b");
  auto held = a.acquire(kLock);
  auto warm = b.acquire("other");
  if (!bench.granted(held) || !bench.granted(warm)) return false;
  auto waits = b.acquire(kLock);
  bench.run(bench.world.between({}, milliseconds(3)));
  a.release(held);
  return !bench.granted(waits, seconds(20));
}

bool stuck_after_time_out(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = bench.program("b").acquire(kLock);
    bench.granted(held);
    auto gives_up = a.acquire(kLock, milliseconds(500));
    bench.run(seconds(3));
    held->handle = LockHandle();
  });
}

bool stuck_after_busy(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = bench.program("b").acquire(kLock);
    bench.granted(held);
    auto tries = a.acquire(kLock, milliseconds(0));
    bench.run(bench.world.between({}, milliseconds(3)));
    bench.network.arm(a.process, Fault::reset_before, [] {});
    bench.run(milliseconds(300));
    bench.network.disarm(a.process);
    held->handle = LockHandle();
  });
}

template <Fault fault>
bool stuck_after_release(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = a.acquire(kLock);
    bench.granted(held);
    bench.run(seconds(1));
    bench.network.arm(a.process, fault, [] {});
    a.release(held);
  });
}

template <Fault fault>
bool stuck_after_create(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    bench.network.arm(a.process, fault, [] {});
    auto held = a.acquire(kLock);
    bench.granted(held);
    bench.run(seconds(8));  // longer than late copies are looked for
    a.release(held);
  });
}

bool two_nodes_after_lost_reply(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  if (!bench.warm_up(a, kLock)) return false;
  bench.network.arm(a.process, Fault::reset_after, [] {});
  auto held = a.acquire(kLock);
  return bench.run_until([&] { return bench.contenders(kLock) > 1; }, seconds(4));
}

/// A leader that is cut off is asked for a node by a client that then gives up; it agrees with the
/// others about it only when it is back.
bool stuck_after_a_cut_leader(std::uint64_t seed) {
  EnsembleBench bench(seed, {.sync_limit = 40});
  auto& servers = bench.store.servers();
  const int leader = servers.leader();
  bench.store.pin(leader);
  auto& a = bench.program("a");
  if (!bench.warm_up(a, kLock)) return false;
  bench.store.pin(-1);
  servers.cut(leader, bench.world.between(seconds(20), seconds(35)));
  auto gives_up = a.acquire(kLock, milliseconds(500));
  bench.run(seconds(50));
  auto next = bench.program("z").acquire(kLock);
  return !bench.granted(next, seconds(20));
}

/// Answered for something else all the time.
void keep_busy(EnsembleBench& bench, Program& program, Duration time) {
  const auto end = bench.world.now() + time;
  while (bench.world.now() < end) {
    const auto other = program.acquire("orders/43");
    bench.run(milliseconds(250));
    program.release(other);
    bench.run(milliseconds(250));
  }
}

/// A create comes so late that its claim has the lock by another, and while its session is nowhere.
bool stuck_behind_a_busy_one(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  if (!bench.warm_up(a, kLock)) return false;
  bench.network.arm(a.process, Fault::overtaken, [] {});
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  bench.network.arm(a.process, Fault::reset_before, [] {});
  auto other = a.acquire("orders/43");
  bench.run(milliseconds(20));
  bench.network.cut(a.process);
  bench.run(milliseconds(1600));
  bench.network.mend(a.process);
  a.release(other);
  keep_busy(bench, a, seconds(4));
  a.release(held);
  auto next = bench.program("z").acquire(kLock);
  keep_busy(bench, a, seconds(8));
  return !next->told;
}

/// The create is on its way to a majority when its server dies; its client goes to the leader.
bool two_nodes_after_a_server_dies(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& servers = bench.store.servers();
  auto& a = bench.program("a");
  if (!bench.warm_up(a, kLock)) return false;
  const int server = bench.server_of(a);
  if (server == servers.leader() || server < 0) return false;
  const auto slow = bench.world.between(milliseconds(100), milliseconds(600));
  servers.slow_links(slow, seconds(8));
  auto held = a.acquire(kLock);
  bench.run(slow + milliseconds(5));
  servers.kill(server, seconds(5));
  return bench.run_until([&] { return bench.contenders(kLock) > 1; }, seconds(6));
}

bool stuck_after_session(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  auto& b = bench.program("b");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  auto waits = b.acquire(kLock);
  bench.run(seconds(1));
  b.process.pause();
  bench.run(seconds(10));
  b.process.resume();
  bench.run(seconds(5));
  a.release(held);
  return !bench.granted(waits, seconds(20));
}

bool loss_is_not_told(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  bench.run(seconds(2));
  bench.store.strike(Fault::deleted, a.process, kLock);
  bench.run(seconds(5));
  return !held->lost_at;
}

// A leader that is cut off calls a waiter's session over; the next one, which gives every session
// its whole time again, keeps its node for that long. The waiter comes back with a new session.
bool lost_with_an_old_session(std::uint64_t seed) {
  EnsembleBench bench(seed, {.sync_limit = 10});
  auto& servers = bench.store.servers();
  const int leader = servers.leader();
  bench.store.pin((leader + 1) % ensemble::Ensemble::kServers);
  auto& holder = bench.program("holder");
  auto held = holder.acquire(kLock);
  if (!bench.granted(held)) return false;
  bench.store.pin(-1);
  auto& waiter = bench.program("waiter");
  auto waits = waiter.acquire(kLock);
  bench.run(seconds(1));
  if (bench.server_of(waiter) != leader) return false;
  servers.cut(leader, seconds(60));
  waiter.process.pause();
  bench.run(bench.world.between(milliseconds(2800), milliseconds(3800)));
  servers.leave_leader(leader);  // and serve nobody until they have elected
  bench.run(bench.world.between(milliseconds(200), milliseconds(1200)));
  waiter.process.resume();
  bench.run(milliseconds(1500));
  holder.release(held);
  const bool granted = bench.granted(waits, seconds(3));
  bench.run(seconds(8));
  return granted && waits->lost();
}

bool watches_stay(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  auto gives_up = bench.program("b").acquire(kLock, milliseconds(500));
  bench.run(seconds(3));
  return bench.store.belongings().watches.size() > 1;  // the holder's own
}

template <bool (*course)(EnsembleBench&)>
bool on_an_ensemble(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return course(bench);
}

/// Its node is taken away, and it has not heard.
bool sealed_after_a_break(std::uint64_t seed) {
  EnsembleBench bench(seed);
  return sealed_by_who_has_lost_it(bench, [&](Program& holder) {
    bench.store.strike(Fault::deleted, holder.process, kSealed);
    bench.run(milliseconds(20));
  });
}

/// The one who looks asks a follower of which the others are far.
bool a_record_of_yesterday(std::uint64_t seed) {
  EnsembleBench bench(seed, {.sync_limit = 40});
  const int leader = bench.store.servers().leader();
  bench.store.pin((leader + 1) % ensemble::Ensemble::kServers);
  auto& reader = warmed(bench, "reader");
  bench.store.pin(leader);
  auto& holder = warmed(bench, "holder");
  bench.store.pin(-1);
  auto held = holder.acquire(kSealed);
  if (!bench.granted(held)) return false;
  bench.store.servers().slow_links(milliseconds(300), seconds(8));
  if (!seal(bench, holder, claim_of(held))) return false;
  const auto found = ask(bench, reader, [](Backend& backend, TimePoint by) {
    return backend.migration().record(kSealed, by);
  });
  return found.status == RecordStatus::done && found.found != kRecord;
}

}  // namespace

std::vector<Scenario> zookeeper_scenarios() {
  std::vector<Scenario> all = {
      {"told too late", &told_too_late, 3000},
      {"granted behind a waiter", &granted_behind_a_waiter, 3},
      {"token falls", &token_falls, 3},
      {"stuck after a hand-over", &stuck_after_hand_over, 300},
      {"stuck after a time-out", &stuck_after_time_out, 3},
      {"stuck after a try", &stuck_after_busy, 100},
      {"stuck after a release", &stuck_after_release<Fault::reset_before>, 3},
      {"stuck after a create", &stuck_after_create<Fault::duplicated>, 20},
      {"two nodes after a lost reply", &two_nodes_after_lost_reply, 5000},
      {"stuck after a cut leader", &stuck_after_a_cut_leader, 20},
      {"stuck behind a busy one", &stuck_behind_a_busy_one, 20},
      {"two nodes after a server dies", &two_nodes_after_a_server_dies, 200},
      {"stuck after a session", &stuck_after_session, 3},
      {"a loss is not told", &loss_is_not_told, 3},
      {"lost with an old session", &lost_with_an_old_session, 300},
      {"watches stay", &watches_stay, 3},
      {"granted beside a record", &on_an_ensemble<&granted_beside_a_record<EnsembleBench>>, 400},
      {"sealed after a break", &sealed_after_a_break, 3},
      {"a record of yesterday", &a_record_of_yesterday, 10},
      {"token below the floor", &on_an_ensemble<&token_below_the_floor<EnsembleBench>>, 3},
      {"a waiter's token below the floor",
       &on_an_ensemble<&waiters_token_below_the_floor<EnsembleBench>>, 3}};
  const auto of_the_counter = counter_scenarios();
  all.insert(all.end(), of_the_counter.begin(), of_the_counter.end());
  return all;
}

}  // namespace dlock::simulation

// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a few chosen events.
#include "tests/simulation/scenario.hpp"

#include <algorithm>
#include <vector>

#include "backends/redis/rules/hand_over.hpp"
#include "tests/simulation/adopts.hpp"
#include "tests/simulation/records.hpp"
#include "tests/simulation/redis/bench.hpp"
#include "tests/simulation/stays.hpp"

namespace dlock::simulation {
namespace redis {
namespace {

bool has_key(RedisBench& bench, const std::string& key) {
  return bench.store.belongings().keys.contains(key);
}

std::uint64_t token_of(RedisBench& bench, Program& program) {
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(500));
  const auto token = attempt->handle.token().value_or(0);
  program.release();
  bench.run(seconds(5));
  return token;
}

// Each tells whether all went well.

bool the_deadline_counts_from_before_sending(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  bench.network.arm(program.process, Fault::reply_late, [] {});
  const auto start = bench.world.now();
  const auto attempt = program.acquire(kLock);
  while (!attempt->told && bench.world.now() < start + seconds(10)) bench.run(milliseconds(1));
  const auto left = attempt->handle.remaining().value_or(Duration::max());
  // After a second it has asked again, and the lease runs from there.
  const auto took = attempt->at - start;
  return took > milliseconds(900) || left <= seconds(3) - took;
}

bool a_claim_that_was_given_up_leaves_the_queue(std::uint64_t seed) {
  RedisBench bench(true, seed);
  bench.holder();
  const auto attempt = bench.program("waiter").acquire(kLock);
  bench.run(seconds(1));
  bench.program("waiter").cancel(*attempt);
  bench.run(milliseconds(100));
  return !has_key(bench, std::string(kKey) + "%queue");
}

bool a_try_without_an_answer_keeps_nothing(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  bench.network.arm(program.process, Fault::reply_lost, [] {});
  program.acquire(kLock, milliseconds(0));
  bench.run(milliseconds(2500));
  return !has_key(bench, kKey);
}

/// The acquire uses a token of a range. It is a plain SET, without a deadline.
bool a_late_acquire_never_arrives(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  for (int i = 0; i < 3; ++i) {
    const auto taken = program.acquire(kLock);
    if (!bench.run_until([&] { return taken->told; })) return false;
    program.release();
    bench.run(milliseconds(20));
  }
  bench.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(1));
  program.cancel(*attempt);
  for (int i = 0; i < 20'000; ++i) {
    bench.run(microseconds(100));
    if (has_key(bench, kKey)) return false;
  }
  return true;
}

/// Where old connections may not be killed.
bool a_late_acquire_is_given_back(std::uint64_t seed) {
  RedisBench bench(true, seed);
  bench.store.primary().forbid_kill();
  auto& program = bench.connected("a");
  bench.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(1));
  program.cancel(*attempt);
  bench.run(milliseconds(2600));  // less than the lease
  return !has_key(bench, kKey);
}

bool a_lost_release_is_repeated(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  program.acquire(kLock);
  bench.run(milliseconds(300));
  bench.network.arm(program.process, Fault::request_lost, [] {});
  program.release();
  bench.run(milliseconds(2000));
  return !has_key(bench, kKey);
}

bool a_release_wakes_the_next(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& holder = bench.holder();
  const auto waiter = bench.program("waiter").acquire(kLock);
  bench.run(seconds(1));
  // Right after it has looked by itself.
  const auto before = bench.store.primary().commands_served();
  while (bench.store.primary().commands_served() == before) bench.run(microseconds(100));
  holder.release();
  bench.run(milliseconds(60));
  return waiter->held();
}

std::string presence_of(RedisBench& bench) {
  for (const auto& key : bench.store.belongings().keys) {
    if (key.starts_with(production::kPresencePrefix)) return key;
  }
  return {};
}

std::string text_of(RedisBench& bench, const std::string& key) {
  auto& server = bench.store.primary();
  const auto* entry = server.keys().find(key, server.now_ms());
  return entry != nullptr ? std::get<std::string>(entry->value) : std::string();
}

/// It is handed the lock, hears of that late or at once, and nobody hears of it from then on.
/// False: it believes when another has it.
bool a_successor_that_falls_silent_loses_it(std::uint64_t seed, bool late) {
  RedisBench bench(true, seed);
  bench.store.poll = seconds(1);
  auto& holder = bench.holder();
  auto& next = bench.program("next");
  const auto first = next.acquire(kLock);
  if (!bench.run_until([&] { return !presence_of(bench).empty(); })) return false;
  const auto presence = presence_of(bench);
  const auto second = bench.program("other").acquire(kLock);
  bench.run(milliseconds(500));
  const auto word = text_of(bench, presence);
  if (!bench.run_until([&] { return text_of(bench, presence) != word; })) return false;
  if (late) bench.network.arm(next.process, Fault::reply_late, [] {});
  holder.release();
  if (!bench.run_until([&] { return first->told; })) return false;
  bench.network.cut(next.process);
  if (!bench.run_until([&] { return second->told; })) return false;
  return !first->held();
}

bool a_hand_over_is_believed_for_the_probation(std::uint64_t seed) {
  return a_successor_that_falls_silent_loses_it(seed, false);
}

bool a_hand_over_counts_from_the_word_that_it_names(std::uint64_t seed) {
  return a_successor_that_falls_silent_loses_it(seed, true);
}

bool a_failover_is_called_by_its_name(std::uint64_t seed) {
  RedisBench bench(false, seed);
  auto& program = bench.connected("a");
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(50));
  bench.store.next_lag = milliseconds(300);
  bench.store.next_hidden = false;
  bench.store.strike(Fault::failover, program.process, kLock);
  bench.run(seconds(3));
  return attempt->lost() && attempt->handle.loss_reason() == LossReason::failover;
}

bool each_lock_gets_its_own_answer(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  const auto first = program.acquire("first");
  const auto second = program.acquire("second");
  bench.run(milliseconds(100));
  bench.store.strike(Fault::deleted, program.process, "first");
  bench.run(milliseconds(1100));
  return first->lost() && second->held();
}

bool tokens_rise_though_the_clock_goes_back(std::uint64_t seed) {
  RedisBench bench(false, seed);
  auto& program = bench.connected("a");
  const auto before = token_of(bench, program);
  bench.store.step_clock(seconds(-60));
  // Another one: who knows a higher token asks for one above it.
  return token_of(bench, bench.connected("b")) > before;
}

std::uint64_t taken_quickly(RedisBench& bench, Program& program) {
  const auto attempt = program.acquire(kLock);
  bench.run_until([&] { return attempt->told; });
  const auto token = attempt->handle.token().value_or(0);
  program.release();
  bench.run(milliseconds(20));
  return token;
}

/// It has taken and given back the lock until tokens of it were its own.
Program& with_a_range(RedisBench& bench) {
  auto& program = bench.connected("a");
  for (int i = 0; i < 3; ++i) taken_quickly(bench, program);
  return program;
}

/// What takes the lock with one of them is done, without an answer; and another had it before.
bool a_token_of_a_range_that_was_overtaken_is_not_found_again(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& other = bench.connected("b");
  auto& program = with_a_range(bench);
  const auto theirs = taken_quickly(bench, other);
  bench.network.arm(program.process, Fault::reset_after, [] {});
  const auto attempt = program.acquire(kLock);
  bench.run(seconds(4));
  return attempt->held() && attempt->handle.token().value_or(0) > theirs;
}

/// Fails over to a server that has the fence of the range and not the grant to another client.
bool a_token_is_above_one_that_a_failover_forgot(std::uint64_t seed, int replicas, bool hidden) {
  RedisBench bench(false, seed);
  bench.store.primary().set_replicas(replicas);
  auto& other = bench.connected("b");
  auto& program = with_a_range(bench);
  const auto before = bench.world.now();
  const auto theirs = taken_quickly(bench, other);
  bench.store.next_lag = std::chrono::ceil<milliseconds>(bench.world.now() - before);
  bench.store.next_hidden = hidden;
  bench.store.strike(Fault::failover, program.process, kLock);
  if (!hidden) bench.run(milliseconds(100));  // until it is connected to the new server
  return taken_quickly(bench, program) > theirs;
}

bool a_range_is_not_used_on_another_server(std::uint64_t seed) {
  return a_token_is_above_one_that_a_failover_forgot(seed, 0, false);
}

bool a_server_with_a_replica_grants_no_range(std::uint64_t seed) {
  return a_token_is_above_one_that_a_failover_forgot(seed, 1, true);
}

bool a_message_before_the_subscription_is_made_up_for(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& holder = bench.holder();
  const auto waiter = bench.program("waiter").acquire(kLock);
  while (!has_key(bench, std::string(kKey) + "%queue")) bench.run(microseconds(20));
  holder.release();
  bench.run(seconds(5));
  return waiter->held();
}

bool a_dead_holder_is_followed(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& holder = bench.holder();
  const auto waiter = bench.program("waiter").acquire(kLock);
  bench.run(seconds(1));
  holder.process.crash();
  bench.store.on_crash(holder.process);
  bench.run(bench.store.progress_bound());
  return waiter->held();
}

bool a_key_ends_though_its_client_died_at_once(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& program = bench.connected("a");
  program.acquire(kLock);
  while (!has_key(bench, kKey)) bench.run(microseconds(20));
  program.process.crash();
  bench.store.on_crash(program.process);
  bench.run(bench.store.longest_lease() + seconds(1));
  return !has_key(bench, kKey);
}

bool a_reader_waits_behind_a_writer(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& first = bench.connected("first");
  const auto reading = first.read(kLock);
  bench.run(milliseconds(300));
  const auto writer = bench.program("writer").acquire(kLock);
  bench.run(seconds(1));
  const auto late = bench.program("late").read(kLock);
  bench.run(seconds(2));
  if (!reading->held() || writer->told || late->told) return false;
  first.release();
  bench.run(seconds(1));
  return writer->held() && !late->told;
}

/// Before they look by themselves.
bool readers_behind_a_writer_come_in_together(std::uint64_t seed) {
  RedisBench bench(true, seed);
  bench.store.poll = seconds(5);
  auto& holder = bench.holder();
  std::vector<AttemptPtr> readers;
  for (const auto* name : {"a", "b", "c"}) {
    readers.push_back(bench.program(name).read(kLock));
    bench.run(milliseconds(500));
  }
  holder.release();
  bench.run(milliseconds(200));
  return std::all_of(readers.begin(), readers.end(), [](const auto& one) { return one->held(); });
}

/// The next look of those behind it is far away.
bool a_writer_that_gives_up_lets_readers_pass(std::uint64_t seed) {
  RedisBench bench(true, seed);
  bench.store.poll = seconds(5);
  const auto first = bench.connected("first").read(kLock);
  bench.run(milliseconds(300));
  const auto writer = bench.program("writer").acquire(kLock);
  bench.run(milliseconds(500));
  const auto late = bench.program("late").read(kLock);
  bench.run(milliseconds(500));
  if (late->told) return false;
  bench.program("writer").cancel(*writer);
  bench.run(milliseconds(300));
  return late->held() && first->held();
}

template <bool (*course)(RedisBench&)>
bool on_a_server(std::uint64_t seed) {
  RedisBench bench(true, seed);
  return course(bench);
}

template <bool (*course)(RedisBench&)>
bool fails_on_a_server(std::uint64_t seed) {
  return !on_a_server<course>(seed);
}

/// Its key is taken away, another has the lock, and it has not heard.
bool sealed_after_a_break(std::uint64_t seed) {
  RedisBench bench(true, seed);
  auto& next = warmed(bench, "next");
  return sealed_by_who_has_lost_it(bench, [&](Program& holder) {
    bench.store.strike(Fault::deleted, holder.process, kSealed);
    bench.granted(next.acquire(kSealed));
  });
}

}  // namespace
}  // namespace redis

std::vector<Scenario> redis_scenarios() {
  using namespace redis;
  return {
      {"the deadline counts from before sending", &fails<&the_deadline_counts_from_before_sending>,
       8},
      {"a claim that was given up leaves the queue",
       &fails<&a_claim_that_was_given_up_leaves_the_queue>, 1},
      {"a try without an answer keeps nothing", &fails<&a_try_without_an_answer_keeps_nothing>, 1},
      {"a hand-over is believed for the probation",
       &fails<&a_hand_over_is_believed_for_the_probation>, 1},
      {"a hand-over counts from the word that it names",
       &fails<&a_hand_over_counts_from_the_word_that_it_names>, 40},
      {"a late acquire never arrives", &fails<&a_late_acquire_never_arrives>, 1},
      {"a late acquire is given back", &fails<&a_late_acquire_is_given_back>, 4},
      {"a lost release is repeated", &fails<&a_lost_release_is_repeated>, 1},
      {"a release wakes the next", &fails<&a_release_wakes_the_next>, 1},
      {"a failover is called by its name", &fails<&a_failover_is_called_by_its_name>, 1},
      {"each lock gets its own answer", &fails<&each_lock_gets_its_own_answer>, 1},
      {"tokens rise though the clock goes back", &fails<&tokens_rise_though_the_clock_goes_back>,
       1},
      {"a token of a range that was overtaken is not found again",
       &fails<&a_token_of_a_range_that_was_overtaken_is_not_found_again>, 1},
      {"a range is not used on another server", &fails<&a_range_is_not_used_on_another_server>, 30},
      {"a server with a replica grants no range", &fails<&a_server_with_a_replica_grants_no_range>,
       1},
      {"a message before the subscription is made up for",
       &fails<&a_message_before_the_subscription_is_made_up_for>, 1},
      {"a dead holder is followed", &fails<&a_dead_holder_is_followed>, 1},
      {"a key ends though its client died at once",
       &fails<&a_key_ends_though_its_client_died_at_once>, 1},
      {"a reader waits behind a writer", &fails<&a_reader_waits_behind_a_writer>, 1},
      {"readers behind a writer come in together",
       &fails<&readers_behind_a_writer_come_in_together>, 1},
      {"a writer that gives up lets readers pass",
       &fails<&a_writer_that_gives_up_lets_readers_pass>, 1},
      {"granted beside a record", &on_a_server<&granted_beside_a_record<RedisBench>>, 10},
      {"an adopter counts from before it asked",
       &fails_on_a_server<&adopter_counts_from_before_asking<RedisBench>>, 40},
      {"a lock that stays is given up to who asks",
       &fails_on_a_server<&is_given_up_to_who_asks<RedisBench>>, 1},
      {"a lock that stays is not given again after a pause",
       &fails_on_a_server<&is_not_given_again_after_a_pause<RedisBench>>, 1},
      {"a lock that stays is not handed on for ever",
       &fails_on_a_server<&is_not_handed_on_for_ever<RedisBench>>, 1},
      {"sealed after a break", &sealed_after_a_break, 1},
      {"token below the floor", &on_a_server<&token_below_the_floor<RedisBench>>, 1},
      {"a waiter's token below the floor", &on_a_server<&waiters_token_below_the_floor<RedisBench>>,
       1},
  };
}

}  // namespace dlock::simulation

// SPDX-License-Identifier: Apache-2.0
//
// Every planted defect is one: the same few events go well without it, and not with it.
#include "tests/simulation/redis/defects.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/planted.hpp"
#include "tests/simulation/redis/fixture.hpp"
#include "tests/simulation/redis/hunt.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr const char* kLock = "orders/42";
constexpr const char* kKey = "dlock:{orders/42}";

bool has_key(Stage& stage, const std::string& key) {
  return stage.redis.belongings().keys.contains(key);
}

/// Connected, and nothing held.
Program& connected(Stage& stage, const std::string& name) {
  auto& program = stage.program(name);
  program.acquire();
  stage.pass(seconds(1));
  program.release();
  stage.pass(seconds(1));
  return program;
}

std::uint64_t token_of(Stage& stage, Program& program) {
  const auto attempt = program.acquire();
  stage.pass(milliseconds(500));
  const auto token = attempt->handle.token().value_or(0);
  program.release();
  stage.pass(seconds(5));
  return token;
}

// Each tells whether all went well.

bool the_deadline_counts_from_before_sending(std::uint64_t seed) {
  Stage stage(true, seed);
  auto& program = connected(stage, "a");
  stage.network.arm(program.process, Fault::reply_late, [] {});
  const auto start = stage.world.now();
  const auto attempt = program.acquire();
  while (!attempt->told && stage.world.now() < start + seconds(10)) stage.pass(milliseconds(1));
  const auto left = attempt->handle.remaining().value_or(Duration::max());
  // After a second it has asked again, and the lease runs from there.
  const auto took = attempt->at - start;
  return took > milliseconds(900) || left <= seconds(3) - took;
}

bool every_deadline_counts_from_before_sending() {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    if (!the_deadline_counts_from_before_sending(seed)) return false;
  }
  return true;
}

bool a_claim_that_was_given_up_leaves_the_queue() {
  Stage stage(true);
  stage.program("holder").acquire();
  stage.pass(milliseconds(100));
  const auto attempt = stage.program("waiter").acquire();
  stage.pass(seconds(1));
  stage.program("waiter").cancel(*attempt);
  stage.pass(milliseconds(100));
  return !has_key(stage, std::string(kKey) + "%queue");
}

bool a_try_without_an_answer_keeps_nothing() {
  Stage stage(true);
  auto& program = connected(stage, "a");
  stage.network.arm(program.process, Fault::reply_lost, [] {});
  program.acquire(milliseconds(0));
  stage.pass(milliseconds(2500));
  return !has_key(stage, kKey);
}

bool a_late_acquire_never_arrives() {
  Stage stage(true);
  auto& program = connected(stage, "a");
  stage.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire();
  stage.pass(milliseconds(1));
  program.cancel(*attempt);
  for (int i = 0; i < 400; ++i) {
    stage.pass(milliseconds(5));
    if (has_key(stage, kKey)) return false;
  }
  return true;
}

bool a_lost_release_is_repeated() {
  Stage stage(true);
  auto& program = connected(stage, "a");
  program.acquire();
  stage.pass(milliseconds(300));
  stage.network.arm(program.process, Fault::request_lost, [] {});
  program.release();
  stage.pass(milliseconds(2000));
  return !has_key(stage, kKey);
}

bool a_release_wakes_the_next() {
  Stage stage(true);
  auto& holder = stage.program("holder");
  holder.acquire();
  stage.pass(milliseconds(100));
  const auto waiter = stage.program("waiter").acquire();
  stage.pass(seconds(1));
  // Right after it has looked by itself.
  const auto before = stage.redis.primary().commands_served();
  while (stage.redis.primary().commands_served() == before) stage.pass(microseconds(100));
  holder.release();
  stage.pass(milliseconds(60));
  return waiter->held();
}

bool a_failover_is_called_by_its_name() {
  Stage stage(false);
  auto& program = connected(stage, "a");
  const auto attempt = program.acquire();
  stage.pass(milliseconds(50));
  stage.redis.next_lag = milliseconds(300);
  stage.redis.strike(Fault::failover, program.process, kLock);
  stage.pass(seconds(3));
  return attempt->lost() && attempt->handle.loss_reason() == LossReason::failover;
}

bool each_lock_gets_its_own_answer() {
  Stage stage(true);
  auto& program = connected(stage, "a");
  const auto first = program.acquire(std::nullopt, "first");
  const auto second = program.acquire(std::nullopt, "second");
  stage.pass(milliseconds(100));
  stage.redis.strike(Fault::deleted, program.process, "first");
  stage.pass(milliseconds(1100));
  return first->lost() && second->held();
}

bool tokens_rise_though_the_clock_goes_back() {
  Stage stage(false);
  auto& program = connected(stage, "a");
  const auto before = token_of(stage, program);
  stage.redis.step_clock(seconds(-60));
  // Another one: who knows a higher token asks for one above it.
  return token_of(stage, connected(stage, "b")) > before;
}

bool a_message_before_the_subscription_is_made_up_for() {
  Stage stage(true);
  auto& holder = stage.program("holder");
  holder.acquire();
  stage.pass(milliseconds(100));
  const auto waiter = stage.program("waiter").acquire();
  while (!has_key(stage, std::string(kKey) + "%queue")) stage.pass(microseconds(20));
  holder.release();
  stage.pass(seconds(5));
  return waiter->held();
}

bool a_dead_holder_is_followed() {
  Stage stage(true);
  auto& holder = stage.program("holder");
  holder.acquire();
  stage.pass(milliseconds(100));
  const auto waiter = stage.program("waiter").acquire();
  stage.pass(seconds(1));
  holder.process.crash();
  stage.redis.on_crash(holder.process);
  stage.pass(stage.redis.progress_bound());
  return waiter->held();
}

using Scenario = bool (*)();

const std::map<std::string_view, Scenario>& scenarios() {
  static const std::map<std::string_view, Scenario> all{
      {"redis_deadline_from_reply", &every_deadline_counts_from_before_sending},
      {"redis_withdraw_forgotten", &a_claim_that_was_given_up_leaves_the_queue},
      {"redis_unknown_taken_as_busy", &a_try_without_an_answer_keeps_nothing},
      {"redis_old_connection_not_killed", &a_late_acquire_never_arrives},
      {"redis_release_not_repeated", &a_lost_release_is_repeated},
      {"redis_release_wakes_nobody", &a_release_wakes_the_next},
      {"redis_run_id_ignored", &a_failover_is_called_by_its_name},
      {"redis_answers_mixed_up", &each_lock_gets_its_own_answer},
      {"redis_token_ignores_fence", &tokens_rise_though_the_clock_goes_back},
      {"redis_fence_forgotten", &tokens_rise_though_the_clock_goes_back},
      {"redis_lost_wakeup", &a_dead_holder_is_followed},
      {"redis_subscribe_without_recheck", &a_message_before_the_subscription_is_made_up_for},
  };
  return all;
}

/// What has no scenario of its own is found by chance, and soon.
bool survives_a_hunt() {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const bool exclusive : {true, false}) {
      if (!hunt(seed, exclusive).complaint.empty()) return false;
    }
  }
  return true;
}

TEST(PlantedRedisDefects, EachSpoilsWhatGoesWellWithoutIt) {
  for (const auto& defect : kDefects) {
    const auto found = scenarios().find(defect.name);
    const auto scenario = found == scenarios().end() ? &survives_a_hunt : found->second;
    if (found != scenarios().end()) {
      EXPECT_TRUE(scenario()) << defect.name << ", which is not planted";
    }
    core::planted_defect = defect.name;
    const bool survived = scenario();
    core::planted_defect = {};
    EXPECT_FALSE(survived) << defect.name << " is planted: " << defect.what;
  }
}

}  // namespace
}  // namespace dlock::simulation::redis

// SPDX-License-Identifier: Apache-2.0
//
// The decisions: what a value says, what an error reply means, what a server's settings promise,
// when a waiter looks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/rules/guarantee.hpp"
#include "backends/redis/rules/pace.hpp"
#include "backends/redis/rules/poll.hpp"
#include "backends/redis/rules/server_clock.hpp"
#include "backends/redis/rules/value.hpp"
#include "backends/redis/scripts/scripts.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

constexpr const char* kId = "01234567-89ab-cdef-0123-456789abcdef";

TEST(ServerClock, CountsOnFromItsLastReading) {
  ServerClock clock;
  const TimePoint asked{1h};
  EXPECT_EQ(clock.at(asked), ServerClock::kNoLimit) << "unknown";
  clock.learn(1'700'000'000'000'000, asked);
  EXPECT_EQ(clock.at(asked + 2s), 1'700'000'002'000'000U);
  EXPECT_EQ(clock.at(asked - 2s), 1'700'000'000'000'000U);
  EXPECT_EQ(clock.at(kNever), ServerClock::kNoLimit);
  clock.learn(1'600'000'000'000'000, asked + 1s);
  EXPECT_EQ(clock.at(asked + 2s), 1'600'000'001'000'000U);
}

TEST(RedisValue, OwnersComeBackAsTheyWere) {
  for (const auto& owner : {Owner{kId, "host", 42, "app"}, Owner{kId, "", 0, ""},
                            Owner{kId, "a,b:c d%", -1, "na\xC3\xAFve\n"}}) {
    const auto text = write_owner(owner);
    EXPECT_EQ(text.find_first_of(" \n"), std::string::npos) << text;
    const auto value = read_value("17:" + text);
    EXPECT_EQ(value.token, 17U);
    const auto waiter = read_waiter(write_waiter(kId, text));
    const auto listener = read_value("17:" + text + "," + kId).owner;
    for (const auto& read : {value.owner, waiter, listener}) {
      EXPECT_EQ(read.id, owner.id);
      EXPECT_EQ(read.host, owner.host);
      EXPECT_EQ(read.pid, owner.pid);
      EXPECT_EQ(read.app, owner.app);
    }
  }
}

TEST(RedisValue, OwnersAndWaitersAsTheScriptsReadThem) {
  const auto owner = write_owner({kId, "ho st", 42, "50%,\x7F"});
  EXPECT_EQ(owner, std::string(kId) + ",ho%20st,42,50%25%2C%7F");
  EXPECT_EQ(write_waiter(kId, owner), std::string(kId) + " " + owner);
}

TEST(RedisValue, OtherClientsValues) {
  for (const char* text : {"", "c9a0b1d2e3f40516", "ADDED:2026-11-20T10:00:00Z@host:uuid", "17",
                           "-1:x", "99999999999999999999:x", ":"}) {
    EXPECT_FALSE(read_value(text).token) << text;
  }
  EXPECT_EQ(read_value("c9a0b1d2e3f40516").owner.id, "c9a0b1d2e3f40516");
  EXPECT_EQ(read_value(std::string(100'000, 'x')).owner.id.size(), 200U);
  EXPECT_EQ(read_value("\x1B[31m").owner.id, "%1B[31m");
}

TEST(RedisError, Replies) {
  using Next = Verdict::Next;
  const struct {
    const char* text;
    Error error;
    Next next;
  } table[] = {
      {"NOSCRIPT No matching script. Please use EVAL.", Error::refused, Next::load_script},
      {"LOADING Redis is loading the dataset in memory", Error::loading, Next::retry},
      {"BUSY Redis is busy running a script.", Error::busy, Next::retry},
      {"BUSYKEY Target key name already exists.", Error::unexpected, Next::give_up},
      {"READONLY You can't write against a read only replica.", Error::read_only, Next::reconnect},
      {"MASTERDOWN Link with MASTER is down", Error::read_only, Next::reconnect},
      {"OOM command not allowed when used memory > 'maxmemory'.", Error::out_of_memory,
       Next::retry},
      {"OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:12.",
       Error::out_of_memory, Next::retry},
      {"ERR Error running script (call to f_ab): @user_script:9: OOM command not allowed",
       Error::out_of_memory, Next::retry},
      {"ERR Error running script (call to f_ab): @user_script:2: WRONGTYPE Operation against",
       Error::foreign_format, Next::give_up},
      {"NOREPLICAS Not enough good replicas to write.", Error::refused, Next::retry},
      {"MISCONF Redis is configured to save RDB snapshots", Error::refused, Next::retry},
      {"NOPERM this user has no permissions to access one of the keys used as arguments",
       Error::access_denied, Next::give_up},
      {"NOPERM this user has no permissions to run the 'evalsha' command", Error::no_scripting,
       Next::give_up},
      {"ERR unknown command 'EVALSHA', with args beginning with: 'ab'", Error::no_scripting,
       Next::give_up},
      {"ERR unknown command `eval`, with args beginning with: ", Error::no_scripting,
       Next::give_up},
      {"ERR unknown command 'CONFIG', with args beginning with: 'GET'", Error::unexpected,
       Next::give_up},
      {"NOAUTH Authentication required.", Error::password_wanted, Next::give_up},
      {"WRONGPASS invalid username-password pair or user is disabled.",
       Error::authentication_failed, Next::give_up},
      {"ERR AUTH <password> called without any password configured for the default user.",
       Error::authentication_failed, Next::give_up},
      {"ERR invalid password", Error::authentication_failed, Next::give_up},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", Error::foreign_format,
       Next::give_up},
      {"ERR The user executing the script can't run this command or subcommand script: ab",
       Error::access_denied, Next::give_up},
      {"MOVED 3999 127.0.0.1:6381", Error::cluster, Next::give_up},
      {"ERR max number of clients reached", Error::no_places, Next::retry},
      {"DENIED Redis is running in protected mode", Error::access_denied, Next::give_up},
      {"ERR DB index is out of range", Error::no_database, Next::give_up},
      {"ERR anything else", Error::unexpected, Next::give_up},
      {"", Error::unexpected, Next::give_up},
  };
  for (const auto& row : table) {
    const auto verdict = judge(row.text);
    EXPECT_EQ(verdict.error, row.error) << row.text;
    EXPECT_EQ(verdict.next, row.next) << row.text;
  }
}

TEST(RedisError, TheRefusedCommandOfAScriptIsNamedByItsLine) {
  const std::string script = "local a = 1\nredis.call('SET', KEYS[1], a)\nreturn a\n";
  const std::string refused =
      "ERR The user executing the script can't run this command or subcommand";
  EXPECT_EQ(refused_command(refused + " script: ab, on @user_script:2.", script), "set");
  EXPECT_EQ(refused_command("ERR Error running script: @user_script:2: @user_script: 2: " + refused,
                            script),
            "set");
  EXPECT_EQ(refused_command(refused + " script: ab, on @user_script:3.", script), "");
  EXPECT_EQ(refused_command(refused + " script: ab, on @user_script:99.", script), "");
  EXPECT_EQ(refused_command(refused, script), "");
  EXPECT_EQ(refused_command("WRONGTYPE script: ab, on @user_script:2.", script), "");
}

TEST(RedisError, EveryCodeHasAMessageAndACondition) {
  for (int code = 1; code <= static_cast<int>(Error::configuration); ++code) {
    const error_code ec(code, redis_category());
    EXPECT_NE(ec.message(), "unknown Redis error") << code;
    EXPECT_EQ(ec.default_error_condition().category(), dlock_category()) << code;
  }
  EXPECT_EQ(error_code(Error::no_scripting), errc::config_unsafe);
  EXPECT_EQ(error_code(Error::loading), errc::unavailable);
}

ServerFacts good_facts() {
  auto facts = facts_from(parse_info(
      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:aaa\r\n\r\n"
      "# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n"
      "aof_last_write_status:ok\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
      "master_replid:r1\r\nmaster_replid2:000\r\n# Cluster\r\ncluster_enabled:0\r\n"));
  facts.fsync = "always";
  facts.no_fsync_on_rewrite = "no";
  return facts;
}

TEST(RedisInfo, WhatIsRead) {
  const auto facts = good_facts();
  EXPECT_TRUE(facts.info_known);
  EXPECT_EQ(facts.run_id, "aaa");
  EXPECT_EQ(facts.version, "7.0.15");
  EXPECT_TRUE(facts.append_only);
  EXPECT_FALSE(facts.append_broken || facts.replica || facts.cluster || facts.sentinel ||
               facts.loading);
  EXPECT_FALSE(facts_from(parse_info("nonsense\nwithout:end")).info_known);
}

TEST(RedisInfo, WhichServerItIs) {
  const auto before = good_facts();
  auto after = before;
  EXPECT_EQ(compare(before, after), ServerChange::none);
  after.run_id = "bbb";
  after.replication_id = "r2";
  EXPECT_EQ(compare(before, after), ServerChange::restarted);
  after.previous_replication_id = "r1";
  EXPECT_EQ(compare(before, after), ServerChange::failed_over);
  EXPECT_EQ(compare(ServerFacts(), after), ServerChange::none);
}

TEST(RedisGuarantee, ExclusiveOnlyWithNothingMissing) {
  const auto all = declare(good_facts(), {});
  EXPECT_EQ(all.guarantee, Guarantee::exclusive);
  EXPECT_TRUE(all.shortfalls.empty());
  EXPECT_THAT(all.assumptions,
              AllOf(Contains(Field(&Capabilities::Assumption::name, "server_clock_not_stepped")),
                    Contains(Field(&Capabilities::Assumption::name, "keys_not_removed")),
                    Not(Contains(Field(&Capabilities::Assumption::name, "restarts_noticed")))));
  EXPECT_EQ(all.token, TokenStrength::time_seeded);
  EXPECT_EQ(all.wake_up, WakeUp::push);
}

struct Lowered {
  const char* name;
  void (*change)(ServerFacts&);
  bool declared;
  bool exclusive;
  const char* setting;  ///< in a remedy
};

TEST(RedisGuarantee, AServerThatMayForgetAssumesThatItsRestartIsNoticed) {
  auto facts = good_facts();
  facts.fsync = "everysec";
  EXPECT_THAT(declare(facts, {}).assumptions,
              Contains(Field(&Capabilities::Assumption::name, "restarts_noticed")));
}

TEST(RedisGuarantee, EachShortfallNamesItsSetting) {
  const Lowered table[] = {
      {"lru", [](ServerFacts& f) { f.eviction_policy = "allkeys-lru"; }, false, false,
       "maxmemory-policy noeviction"},
      {"volatile", [](ServerFacts& f) { f.eviction_policy = "volatile-ttl"; }, false, false,
       "maxmemory-policy noeviction"},
      {"no aof", [](ServerFacts& f) { f.append_only = false; }, false, false, "appendonly yes"},
      {"no aof, declared", [](ServerFacts& f) { f.append_only = false; }, true, false,
       "appendonly yes"},
      {"everysec", [](ServerFacts& f) { f.fsync = "everysec"; }, false, false,
       "appendfsync always"},
      {"everysec, declared otherwise", [](ServerFacts& f) { f.fsync = "everysec"; }, true, false,
       "appendfsync always"},
      {"not told", [](ServerFacts& f) { f.fsync.reset(); }, false, false,
       "durability=appendfsync-always"},
      {"declared", [](ServerFacts& f) { f.fsync.reset(); }, true, true, ""},
      {"rewrite", [](ServerFacts& f) { f.no_fsync_on_rewrite = "yes"; }, false, false,
       "no-appendfsync-on-rewrite no"},
      {"disk", [](ServerFacts& f) { f.append_broken = true; }, false, false, "disk"},
      {"replicas", [](ServerFacts& f) { f.replicas = 1; }, false, false, "without replicas"},
      {"two replicas", [](ServerFacts& f) { f.replicas = 2; }, false, false, "without replicas"},
      {"nothing told", [](ServerFacts& f) { f = {}; }, true, false, "+info"},
  };
  for (const auto& row : table) {
    auto facts = good_facts();
    row.change(facts);
    Declaration declaration;
    declaration.fsync_always_declared = row.declared;
    const auto all = declare(facts, declaration);
    EXPECT_EQ(all.guarantee == Guarantee::exclusive, row.exclusive) << row.name;
    EXPECT_EQ(all.shortfalls.empty(), row.exclusive) << row.name;
    if (!row.exclusive) {
      EXPECT_THAT(all.shortfalls,
                  Contains(Field(&Capabilities::Shortfall::remedy, HasSubstr(row.setting))))
          << row.name;
    }
  }
}

TEST(RedisGuarantee, ADeclarationIsShownAsTheOperators) {
  auto facts = good_facts();
  facts.fsync.reset();
  Declaration declaration;
  declaration.fsync_always_declared = true;
  const auto all = declare(facts, declaration);
  EXPECT_THAT(all.assumptions,
              Contains(Field(&Capabilities::Assumption::name, "durability_declared")));
  EXPECT_THAT(all.notes, Contains(HasSubstr("operator's declaration")));
}

TEST(RedisPoll, TheFrontLooksWithinTheBoundAndWhenTheLeaseIsOver) {
  const struct {
    std::int64_t rank;
    std::chrono::milliseconds remaining;
    Duration least;
    Duration most;
  } table[] = {
      {0, -1ms, 750ms, 1000ms},  {0, 20s, 750ms, 1000ms},    {0, 300ms, 301ms, 301ms},
      {3, 300ms, 301ms, 301ms},  {4, 300ms, 750ms, 1000ms},  {0, 0ms, 5ms, 5ms},
      {8, -1ms, 750ms, 1000ms},  {16, -1ms, 1500ms, 2000ms}, {9999, -1ms, 3750ms, 5000ms},
      {-1, -1ms, 750ms, 1000ms},
  };
  for (const auto& row : table) {
    for (const std::uint64_t dice :
         {std::uint64_t{0}, std::uint64_t{12345678901}, ~std::uint64_t{0}}) {
      const auto delay = poll_delay({row.rank, row.remaining}, 1000ms, dice);
      EXPECT_GE(delay, row.least) << row.rank;
      EXPECT_LE(delay, row.most) << row.rank;
    }
  }
  EXPECT_GT(waiter_patience(1000ms), 2 * 5000ms);
  EXPECT_GT(near_patience(1000ms), poll_delay({8}, 1000ms, 0)) << "each of the first polls in time";
  EXPECT_LT(near_patience(1000ms), 2000ms);
}

/// How many tries a second are made over a minute by something that stands for `lifetime` each.
double tries_a_second(Duration lifetime) {
  constexpr auto kTime = 600s;
  Pace pace;
  TimePoint now{};
  int tries = 0;
  for (; now < TimePoint(kTime); ++tries) {
    now = std::max(now, pace.next());
    pace.begin(now);
    now += lifetime;
    pace.ended(now, lifetime, static_cast<std::uint64_t>(tries) * 0x9E3779B97F4A7C15U);
  }
  return static_cast<double>(tries - 8) / static_cast<double>(kTime.count());
}

TEST(RedisPace, PausesDoubleAndSixTriesFitIntoAMoment) {
  const TimePoint start{1h};
  Pace pace;
  auto now = start;
  std::vector<std::int64_t> tries;
  for (int i = 0; i < 9; ++i) {
    now = std::max(now, pace.next());
    tries.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - start).count());
    pace.begin(now);
    pace.failed(now, 0);
    EXPECT_EQ(pace.failures(), i + 1);
  }
  EXPECT_EQ(tries, (std::vector<std::int64_t>{0, 10, 30, 70, 150, 310, 1000, 2000, 3000}));
}

TEST(RedisPace, APauseIsUpToAQuarterLonger) {
  const TimePoint start{1h};
  const auto pause = [&](std::uint64_t dice) {
    Pace pace;
    pace.failed(start, dice);
    return pace.next() - start;
  };
  EXPECT_EQ(pause(0), 10ms);
  EXPECT_EQ(pause(2'499'999), 10ms + 2'499'999ns);
  EXPECT_EQ(pause(2'500'000), 10ms);
  Pace slow;
  for (int i = 0; i < 20; ++i) slow.failed(start, 0);
  EXPECT_EQ(slow.next() - start, 1s) << "the longest";
}

TEST(RedisPace, AConnectionIsGoodFromItsFirstSecondOn) {
  const TimePoint start{1h};
  Pace pace;
  pace.failed(start, 0);
  pace.ended(start, 1s - 1ns, 0);
  EXPECT_EQ(pace.failures(), 2);
  EXPECT_EQ(pace.next() - start, 20ms);
  pace.ended(start, 1s, 0);
  EXPECT_EQ(pace.failures(), 0);
  EXPECT_EQ(pace.next(), start);
  pace.wait_until(start + 5s);
  EXPECT_EQ(pace.next(), start + 5s);
  pace.wait_until(start + 4s);
  EXPECT_EQ(pace.next(), start + 5s);
}

TEST(RedisPoll, DelaysFollowTheRankAndTheRestOfTheLease) {
  const auto delay = [](std::int64_t rank, std::int64_t remaining = -1, std::uint64_t dice = 0) {
    return poll_delay({rank, std::chrono::milliseconds(remaining)}, 1000ms, dice);
  };
  EXPECT_EQ(delay(0), 1000ms);
  EXPECT_EQ(delay(0, -1, 249'999'999), 1000ms - 249'999'999ns);
  EXPECT_EQ(delay(0, -1, 250'000'000), 1000ms);
  EXPECT_EQ(delay(8), 1000ms);
  EXPECT_EQ(delay(9), 1125ms);
  EXPECT_EQ(delay(40), 5000ms);
  EXPECT_EQ(delay(41), 5000ms);
  EXPECT_EQ(delay(3, 300), 301ms);
  EXPECT_EQ(delay(4, 300), 1000ms);
  EXPECT_EQ(delay(3, 2000), 1000ms);
  EXPECT_EQ(delay(0, 0), 5ms);
  EXPECT_EQ(delay(-1, 300), 301ms);
  EXPECT_EQ(waiter_patience(1000ms), 11s);
  EXPECT_EQ(near_patience(1000ms), 1600ms);
}

TEST(RedisPace, P14_IsOneTryASecondAtMostHoweverLongEachStands) {
  for (const Duration lifetime : {Duration(0), Duration(1ms), Duration(300ms), Duration(999ms),
                                  Duration(1s), Duration(1001ms), Duration(3s)}) {
    EXPECT_LE(tries_a_second(lifetime), 1.0) << lifetime.count();
  }
}

TEST(RedisPace, AGoodConnectionIsMadeAnewAtOnceAndABadOneAfterGrowingPauses) {
  Pace pace;
  TimePoint now(1h);
  EXPECT_LE(pace.next(), now);
  Duration last{};
  for (int i = 0; i < 7; ++i) {
    pace.begin(now);
    pace.failed(now, 0);
    EXPECT_GT(pace.next() - now, last) << i;
    last = pace.next() - now;
    now = pace.next();
  }
  EXPECT_GE(last, 500ms);
  pace.begin(now);
  now += 10s;
  pace.ended(now, 10s, 0);
  EXPECT_LE(pace.next(), now);
  EXPECT_EQ(pace.failures(), 0);
}

TEST(RedisError, AKeyOfTheWrongTypeIsFound) {
  const std::vector<std::string> keys{"lock", "queue"};
  const std::string script = "\nredis.call('GET', KEYS[1])\nredis.call('ZADD', KEYS[2], 1, 'a')\n";
  const auto found = [&](const std::string& text) {
    const auto* key = wrong_key(text, script, keys);
    return key != nullptr ? *key : "none";
  };
  EXPECT_EQ(found("WRONGTYPE Operation script: 0f, on @user_script:2."), "lock");
  EXPECT_EQ(found("WRONGTYPE Operation script: 0f, on @user_script:3."), "queue");
  EXPECT_EQ(found("WRONGTYPE Operation script: 0f, on @user_script:900."), "none");
  EXPECT_EQ(found("WRONGTYPE Operation"), "none");
}

TEST(RedisScripts, AreNamedByTheirSha1) {
  EXPECT_EQ(Script("return 1").sha, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  EXPECT_NE(scripts().acquire.sha, scripts().renew.sha);
}

}  // namespace
}  // namespace dlock::redis

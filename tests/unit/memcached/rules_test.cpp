// SPDX-License-Identifier: Apache-2.0
//
// The decisions of the Memcached backend that need no server: keys, placement, leases, tokens,
// reasons, values, and when to poll.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>

#include "backends/memcached/lock/poller.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/names.hpp"
#include "backends/memcached/rules/pacer.hpp"
#include "backends/memcached/rules/placement.hpp"
#include "backends/memcached/rules/server_info.hpp"
#include "backends/memcached/rules/server_list.hpp"
#include "backends/memcached/rules/token.hpp"
#include "backends/memcached/rules/value.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/name.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::memcached {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(MemcachedNames, AreSpelledAsTheyAre) {
  const KeyMap keys("dlock:{name}");
  EXPECT_EQ(keys.lock_key("orders/42"), "dlock:orders/42");
  EXPECT_EQ(keys.token_key("orders/42"), "dlock:orders/42%t");
  EXPECT_EQ(keys.canary_key(), "dlock:%canary");
  EXPECT_EQ(keys.lock_key("a b"), "dlock:a%20b");
  EXPECT_EQ(keys.lock_key("100%"), "dlock:100%25");
  EXPECT_EQ(keys.lock_key("größe"), "dlock:größe");
  EXPECT_EQ(KeyMap("__TOOZ_LOCK_{name}").lock_key("x"), "__TOOZ_LOCK_x");
  EXPECT_EQ(KeyMap("a-{name}-z").token_key("x"), "a-x%t-z");
}

// F49: no name breaks the protocol, none meets another's keys.
TEST(MemcachedNames, F49_KeysAreShortPlainAndDistinct) {
  std::vector<std::string> names;
  for (const char* seed : {"a", "a/b", "%t", "a%t", "%canary", "a%20b", "a b", "A B", "a%2520b",
                           "%s", "a:b", "\xC3\xA9"}) {
    names.emplace_back(seed);
  }
  for (const std::size_t size : {200U, 230U, 231U, 240U, 241U, 242U, 243U, 250U, 400U, 512U}) {
    names.emplace_back(size, 'x');
    names.push_back(std::string(size - 1, 'x') + "y");
    names.push_back(std::string(size / 2, ' ') + "z");
  }
  for (const char* text : {"dlock:{name}", "{name}", "{name}%t", "p-{name}-s"}) {
    const KeyMap keys(text);
    std::set<std::string> seen{keys.canary_key()};
    for (const auto& name : std::set(names.begin(), names.end())) {
      for (const auto& key : {keys.lock_key(name), keys.token_key(name)}) {
        EXPECT_LE(key.size(), kLongestKey) << name;
        EXPECT_TRUE(seen.insert(key).second) << name << " " << key;
        for (const char c : key) {
          const auto byte = static_cast<unsigned char>(c);
          EXPECT_TRUE(byte > 0x20 && byte != 0x7F) << key;
        }
      }
    }
  }
}

TEST(MemcachedNames, LongOnesEndInTheirDigest) {
  const KeyMap keys("dlock:{name}");
  const std::string name(300, 'n');
  const auto key = keys.lock_key(name);
  EXPECT_EQ(key.size(), kLongestKey - 2);
  EXPECT_TRUE(key.ends_with("%s" + sha256_hex(name)));
}

TEST(MemcachedNames, TemplatesAreChecked) {
  EXPECT_EQ(key_template_error("dlock:{name}"), "");
  EXPECT_THAT(key_template_error("dlock"), HasSubstr("{name}"));
  EXPECT_THAT(key_template_error("{name}{name}"), HasSubstr("once"));
  EXPECT_THAT(key_template_error("a {name}"), HasSubstr("spaces"));
  EXPECT_THAT(key_template_error(std::string(100, 'a') + "{name}"), HasSubstr("longer"));
}

TEST(MemcachedPlacement, DefaultIsTheHashOfTheName) {
  EXPECT_EQ(server_of("anything", 1), 0U);
  // These values are a contract: a client that chose otherwise would be a second owner.
  EXPECT_EQ(server_of("orders/42", 2), server_of("orders/42", 2));
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) ++counts.at(server_of("lock/" + std::to_string(i), 3));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  // SHA-256("abc") begins with ba7816bf.
  EXPECT_EQ(server_of("abc", 1000), 0xba7816bfU % 1000);
}

StoreOptions servers_of(std::vector<Endpoint> servers, std::string distribution,
                        std::string label = {}) {
  StoreOptions options;
  options.endpoints = std::move(servers);
  options.text["distribution"] = std::move(distribution);
  options.text["server_list"] = std::move(label);
  return options;
}

/// The places of 22 names on three servers, one digit each.
std::string places(std::string distribution) {
  // The ring of ketama leaves out the port 11211.
  const Placement placement(servers_of(
      {{"10.0.0.1", 11211}, {"10.0.0.2", 11211}, {"cache-3", 22122}}, std::move(distribution)));
  const KeyMap keys("dlock:{name}");
  std::string out;
  for (int i = 0; i < 20; ++i) {
    out += std::to_string(placement.server_of("n" + std::to_string(i), keys));
  }
  for (const char* name : {"orders/42", "größe"}) {
    out += std::to_string(placement.server_of(name, keys));
  }
  return out;
}

// These values are a contract with other clients. They were computed apart from libmemcached, from
// its published algorithms.
TEST(MemcachedPlacement, EqualsThatOfOtherClientsForTheSameKey) {
  EXPECT_EQ(places("sha256"), "0222222021222122011101");
  EXPECT_EQ(places("modula"), "0000000002220001101001");
  EXPECT_EQ(places("ketama"), "0121222201120120122100");
  EXPECT_EQ(places("ketama_weighted"), "1021122112001210201120");
}

std::string refusal(const StoreOptions& options) {
  try {
    const Placement placement(options);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.what();
  }
  return {};
}

TEST(MemcachedPlacement, LoneServerKeepsAllLocksWithEachDistribution) {
  for (const char* distribution : {"sha256", "modula", "ketama", "ketama_weighted"}) {
    const Placement placement(servers_of({{"h", 1}}, distribution, "blue"));
    for (const char* name : {"a", "b", "c", "d"}) {
      EXPECT_EQ(placement.server_of(name, KeyMap("{name}")), 0U) << distribution;
    }
  }
}

// ketama hashes the addresses, which may differ under one label.
TEST(MemcachedPlacement, KetamaRefusesALabelForTheList) {
  const std::vector<Endpoint> two{{"a", 1}, {"b", 2}};
  EXPECT_EQ(refusal(servers_of(two, "sha256", "blue")), "");
  EXPECT_EQ(refusal(servers_of(two, "modula", "blue")), "");
  for (const char* distribution : {"ketama", "ketama_weighted"}) {
    EXPECT_EQ(refusal(servers_of(two, distribution)), "");
    EXPECT_THAT(refusal(servers_of(two, distribution, "blue")),
                testing::AllOf(HasSubstr("server_list 'blue'"), HasSubstr(distribution),
                               HasSubstr("distribution=modula")));
  }
}

// libmemcached aborts the process from 101 servers on.
TEST(MemcachedPlacement, KetamaRefusesMoreThan100Servers) {
  const std::vector<Endpoint> hundred(100, Endpoint{"h", 1});
  std::vector<Endpoint> more = hundred;
  more.push_back({"h", 2});
  EXPECT_EQ(refusal(servers_of(more, "modula")), "");
  for (const char* distribution : {"ketama", "ketama_weighted"}) {
    EXPECT_EQ(refusal(servers_of(hundred, distribution)), "");
    EXPECT_THAT(refusal(servers_of(more, distribution)),
                testing::AllOf(HasSubstr("at most 100 servers"), HasSubstr("101")));
  }
}

TEST(MemcachedPlacement, RefusesAnAddressThatLibmemcachedDoesNotAccept) {
  const std::vector<Endpoint> servers{{"a", 1}, {std::string(2000, 'h'), 1}};
  EXPECT_EQ(refusal(servers_of(servers, "sha256")), "");
  EXPECT_THAT(refusal(servers_of(servers, "modula")), HasSubstr("hhh:1"));
}

TEST(MemcachedLease, F28_AsksForASecondMore) {
  EXPECT_EQ(exptime_of(3s), 4);
  EXPECT_EQ(exptime_of(3001ms), 5);
  EXPECT_EQ(exptime_of(3999ms), 5);
  EXPECT_EQ(exptime_of(30s), 31);
  EXPECT_EQ(exptime_of(kShortestLease), 4);
}

TEST(MemcachedLease, F29_NeverBecomesADate) {
  EXPECT_EQ(exptime_of(kLongestLease), 2'592'000);
  EXPECT_GT(kPastExpiry, exptime_of(kLongestLease));
}

TEST(MemcachedToken, StartsAtTheClockAndAboveTheFloor) {
  EXPECT_EQ(token_seed(1'700'000'000'000'000, 0), 1'700'000'000'000'000U);
  EXPECT_EQ(token_seed(1'700'000'000'000'000, 1'800'000'000'000'000), 1'800'000'000'000'001U);
  EXPECT_EQ(token_seed(-5, 0), 1U);
  EXPECT_EQ(token_raise(10, 9), 0U);
  EXPECT_EQ(token_raise(10, 10), 1U);
  EXPECT_EQ(token_raise(10, 500), 491U);
  EXPECT_LT(token_seed(4'000'000'000'000'000, 0), kTokenEnd);  // the year 2096
}

ServerInfo said(std::int64_t pid, std::int64_t uptime, std::int64_t time, std::uint64_t evictions,
                std::uint64_t flushes) {
  ServerInfo info;
  info.pid = pid;
  info.uptime = uptime;
  info.time = time;
  info.evictions = evictions;
  info.flushes = flushes;
  return info;
}

// Half of all tokens are left above what a clock far ahead begins with.
TEST(MemcachedToken, AClockFarAheadUsesNothingUp) {
  const auto far = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(token_seed(far, 0), kTokenEnd / 2);
  EXPECT_EQ(token_seed(far, kTokenEnd / 2 + 7), kTokenEnd / 2 + 8) << "but above the floor";
  EXPECT_LT(token_seed(4'102'444'800'000'000, 0), kTokenEnd / 2) << "the year 2100 is right";
}

TEST(MemcachedPacer, TriesOnceInTwoSecondsWhateverComesOfIt) {
  for (const auto lives : {0ms, 30ms, 1000ms, 9000ms}) {
    Pacer pacer;
    TimePoint now{std::chrono::hours(1)};
    const auto end = now + std::chrono::seconds(60);
    int tries = 0;
    while (now < end) {
      if (pacer.may_try(now)) {
        pacer.tried(now);
        ++tries;
        now += lives;
      }
      now += std::chrono::milliseconds(1);
    }
    EXPECT_LE(tries, 40) << lives.count();
    EXPECT_GE(tries, 6) << lives.count();
  }
}

TEST(MemcachedPacer, OneThatHasLivedIsMadeAnewAtOnce) {
  Pacer pacer;
  TimePoint now{std::chrono::hours(1)};
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(pacer.may_try(now));
    pacer.tried(now);
    EXPECT_TRUE(pacer.may_try(now)) << "and once more, if it broke at once";
    now += std::chrono::seconds(10);
  }
}

std::string note_of(const std::vector<Endpoint>& servers, std::size_t place,
                    std::string_view label = {}) {
  return server_note(servers, place, label, "sha256");
}

TEST(MemcachedServerList, SaysThePlaceAndTheList) {
  const std::vector<Endpoint> two{{"a", 1}, {"b", 2}};
  const std::vector<Endpoint> turned{{"b", 2}, {"a", 1}};
  EXPECT_EQ(note_of(two, 0), "v=1 server 1 of 2: a:1,b:2");
  EXPECT_EQ(note_of({{"a", 1}}, 0), "v=1 server 1 of 1") << "its address may differ";
  EXPECT_EQ(note_of({{"a", 1}}, 0, "x"), note_of({{"c", 3}}, 0));
  EXPECT_NE(note_of(two, 0), note_of(turned, 1));
  EXPECT_EQ(note_of(two, 0, "blue"), note_of({{"c", 1}, {"d", 2}}, 0, "blue"));
  EXPECT_NE(note_of(two, 0, "blue"), note_of(two, 1, "blue"));
  const std::vector<Endpoint> many(100, Endpoint{std::string(100, 'h'), 11211});
  EXPECT_LT(note_of(many, 99).size(), 200U);
}

TEST(MemcachedServerList, NoteCoversTheDistribution) {
  const std::vector<Endpoint> two{{"a", 1}, {"b", 2}};
  EXPECT_EQ(server_note(two, 1, {}, "modula"), "v=1 server 2 of 2, distribution=modula: a:1,b:2");
  EXPECT_EQ(server_note(two, 1, {}, "ketama"), "v=1 server 2 of 2, distribution=ketama: a:1,b:2");
  EXPECT_EQ(server_note(two, 0, "blue", "modula"),
            "v=1 server 1 of 2, distribution=modula, list 'blue'");
  EXPECT_EQ(server_note({{"a", 1}}, 0, {}, "ketama"), "v=1 server 1 of 1");
}

TEST(MemcachedServerList, ALongListIsAChecksum) {
  const auto note = [](std::size_t size) {
    const std::string_view rest = ":1,a:2";
    return note_of({{std::string(size - rest.size(), 'h'), 1}, {"a", 2}}, 0);
  };
  EXPECT_EQ(note(512), "v=1 server 1 of 2: " + std::string(506, 'h') + ":1,a:2");
  EXPECT_EQ(note(513), "v=1 server 1 of 2: sha256 " + sha256_hex(std::string(507, 'h') + ":1,a:2"));
}

TEST(MemcachedServerList, IsKeptLongerThanLocks) {
  EXPECT_EQ(note_exptime(30s), 600);
  EXPECT_EQ(note_exptime(1h), 7200);
  EXPECT_LT(note_exptime(kLongestLease), kPastExpiry) << "not a date";
}

TEST(MemcachedServerList, NamesBothListsAndWhatToDo) {
  const auto text =
      other_note("h:1", "dlock:%list", "server 1 of 2: a:1,b:2", "\x1b[31m of 2", 600);
  for (const auto* part :
       {"h:1", "a:1,b:2", "?[31m of 2", "600 s", "dlock:%list", "server_list="}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(MemcachedToken, ACounterAheadOfTheClockIsNotForgotten) {
  EXPECT_EQ(token_exptime(1000, 1000), kTokenExptime);
  EXPECT_EQ(token_exptime(1001, 1000), 0);
  EXPECT_EQ(token_exptime(1, -5), kTokenExptime);
}

TEST(MemcachedFacts, WhyALockIsGone) {
  const auto before = said(7, 100, 10'100, 5, 1);
  struct Row {
    ServerInfo after;
    LossReason reason;
  };
  const std::vector<Row> rows{
      {said(7, 110, 10'110, 5, 1), LossReason::removed},
      {said(7, 110, 10'110, 6, 1), LossReason::evicted},
      {said(7, 110, 10'110, 5, 2), LossReason::removed},
      {said(7, 110, 10'110, 9, 2), LossReason::removed},
      {said(8, 3, 10'110, 0, 0), LossReason::store_restarted},
      {said(7, 3, 10'110, 0, 0), LossReason::store_restarted},  // pid 1 in each container
      {said(7, 111, 10'110, 5, 1), LossReason::removed},        // the second between two readings
  };
  for (const auto& row : rows) EXPECT_EQ(reason_of_loss(before, row.after), row.reason);
}

TEST(MemcachedFacts, MetaCommandsAreTriedWhereTheyAreTested) {
  EXPECT_TRUE(has_meta_commands("1.6.18"));
  EXPECT_TRUE(has_meta_commands("1.10.0"));
  for (const auto* version : {"1.6.17", "1.5.22", "37.0.0-master", "2.0.0", ""}) {
    EXPECT_FALSE(has_meta_commands(version)) << version;
  }
}

TEST(MemcachedFacts, F88_BrokenVersionsAreRefused) {
  for (const char* good : {"1.5.14", "1.5.22", "1.6.0", "1.6.11", "1.6.13", "1.6.18", "2.0.0"}) {
    EXPECT_EQ(version_error(good), "") << good;
  }
  for (const char* bad : {"1.5.13", "1.4.39", "1.6.12", "1.6.12-beta", "", "nonsense"}) {
    EXPECT_THAT(version_error(bad), HasSubstr("1.5.14")) << bad;
  }
}

TEST(MemcachedFacts, AreReadFromStats) {
  ServerInfo info;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"pid", "42"},
                                                        {"uptime", "7"},
                                                        {"time", "1000"},
                                                        {"version", "1.6.18"},
                                                        {"evictions", "3"},
                                                        {"evictions", "off"},
                                                        {"limit_maxbytes", "67108864"},
                                                        {"cmd_flush", "2"},
                                                        {"curr_items", "5"}}) {
    take_stat(info, key, value);
  }
  EXPECT_EQ(info.pid, 42);
  EXPECT_EQ(info.version, "1.6.18");
  EXPECT_EQ(info.evictions, 3U);
  EXPECT_FALSE(info.evicts);
  EXPECT_EQ(info.flushes, 2U);
}

TEST(MemcachedFacts, DeclareBestEffortWithRemedies) {
  ServerInfo safe;
  safe.evicts = false;
  EXPECT_EQ(declare({safe}, 30s).guarantee, Guarantee::best_effort);
  EXPECT_EQ(declare({safe}, 30s).shortfalls.size(), 1U);
  const auto both = declare({safe, ServerInfo{}}, 30s);
  ASSERT_EQ(both.shortfalls.size(), 2U);
  EXPECT_THAT(both.shortfalls[1].remedy, HasSubstr("-M"));
  EXPECT_EQ(both.token, TokenStrength::time_seeded);
  EXPECT_EQ(both.shortest_lease, 3s);
  EXPECT_EQ(both.longest_lease, 30 * 24h - 1s);
  EXPECT_FALSE(both.can_list);
}

TEST(MemcachedValue, SaysWhoseItIs) {
  Value value;
  value.owner = {"1234", "host\nname", 42, "an app=%"};
  value.name = "orders/42";
  value.lease = 30s;
  value.since_ms = 17;
  value.renewed_ms = 18;
  const auto text = write_value(value);
  const auto back = read_value(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->owner.host, "host\nname");
  EXPECT_EQ(back->owner.app, "an app=%");
  EXPECT_EQ(back->owner.pid, 42);
  EXPECT_EQ(back->name, "orders/42");
  EXPECT_EQ(back->lease, 30s);
  EXPECT_EQ(back->renewed_ms, 18);
  EXPECT_TRUE(belongs_to(text, "1234"));
  EXPECT_FALSE(belongs_to(text, "123"));
  EXPECT_FALSE(belongs_to("1234", "1234"));
  EXPECT_FALSE(belongs_to("", ""));
  EXPECT_FALSE(belongs_to(write_value(Value{}), "")) << "nobody's is not ours";
  EXPECT_FALSE(read_value("1"));
}

TEST(MemcachedValue, AnIdIsComparedAsItWasGiven) {
  Value value;
  value.owner.id = "a%41\nid=b\x7F";
  const auto text = write_value(value);
  EXPECT_EQ(read_value(text)->owner.id, value.owner.id);
  EXPECT_TRUE(belongs_to(text, value.owner.id));
  EXPECT_FALSE(belongs_to(text, "aA\nid=b\x7F"));
  EXPECT_FALSE(belongs_to(text, "b"));
}

class MemcachedPoller : public testing::Test {
 protected:
  std::shared_ptr<KeyClaim> waiter(const std::string& key) {
    auto claim = std::make_shared<KeyClaim>(ClaimRequest{}, env_, nullptr);
    claim->key = key;
    poller_.add(*claim);
    return claim;
  }
  tests::VirtualEnv env_;
  Poller poller_{{10ms, 50ms}};
};

TEST_F(MemcachedPoller, WakesOnePerKeyInTheOrderOfComing) {
  const auto first = waiter("a");
  const auto second = waiter("a");
  const auto other = waiter("b");
  EXPECT_THAT(poller_.keys(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(poller_.next("a"), first.get());
  first->woken = true;
  EXPECT_EQ(poller_.next("a"), second.get());
  // It tried in vain and comes back: its place is kept.
  poller_.remove(*first);
  poller_.add(*first);
  EXPECT_EQ(poller_.next("a"), first.get());
  poller_.remove(*first);
  poller_.remove(*second);
  EXPECT_EQ(poller_.next("a"), nullptr);
  EXPECT_THAT(poller_.keys(), testing::ElementsAre("b"));
}

TEST_F(MemcachedPoller, SlowsDownAndStartsShortWithANewcomer) {
  const auto one = waiter("a");
  EXPECT_LE(poller_.pause(1023), 12'500us);
  for (int i = 0; i < 20; ++i) poller_.pause(0);
  EXPECT_EQ(poller_.pause(0), 37'500us);
  EXPECT_LE(poller_.pause(1023), 62'500us);
  const auto two = waiter("b");
  EXPECT_EQ(poller_.pause(0), 7'500us);
}

TEST_F(MemcachedPoller, PausesGrowByAQuarterAndAreJittered) {
  const auto one = waiter("a");
  std::vector<Duration> pauses;
  for (int i = 0; i < 3; ++i) pauses.push_back(poller_.pause(0));
  EXPECT_THAT(pauses, testing::ElementsAre(7500us, 9375us, 11'718'750ns));
  const auto two = waiter("b");
  EXPECT_EQ(poller_.pause(512), 7500us + 2500us);
  EXPECT_EQ(poller_.pause(1024), 9375us) << "the dice are taken modulo 1024";
  // A claim that tried in vain does not shorten the pause.
  poller_.remove(*one);
  poller_.add(*one);
  EXPECT_EQ(poller_.pause(0), 11'718'750ns);
  EXPECT_TRUE(poller_.has_waiters());
  poller_.remove(*one);
  poller_.remove(*one);
  poller_.remove(*two);
  EXPECT_FALSE(poller_.has_waiters());
  EXPECT_EQ(poller_.pause(0), 187'500us) << "no claim waits";
}

TEST(MemcachedPacer, TheSecondTryIsAtOnceAndTheOthersLaterAndLater) {
  Pacer pacer;
  auto now = TimePoint(1h);
  for (const auto pause : {0ms, 0ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
    if (pause > 0ms) {
      EXPECT_FALSE(pacer.may_try(now + pause - 1ns)) << pause.count();
    }
    EXPECT_TRUE(pacer.may_try(now + pause)) << pause.count();
    now += pause;
    pacer.tried(now);
  }
  now += 10s - 1ns;
  pacer.tried(now);
  EXPECT_FALSE(pacer.may_try(now + 2s - 1ns)) << "it has not lived for ten seconds";
  now += 10s;
  pacer.tried(now);
  EXPECT_TRUE(pacer.may_try(now));
}

TEST_F(MemcachedPoller, ForgetsStraysInTime) {
  poller_.add_stray({"k", "id", {}}, TimePoint(10s));
  EXPECT_FALSE(poller_.idle());
  EXPECT_GE(poller_.pause(0), 150ms);
  EXPECT_EQ(poller_.strays(TimePoint(9s)).size(), 1U);
  EXPECT_TRUE(poller_.strays(TimePoint(10s)).empty());
  EXPECT_TRUE(poller_.idle());
}

}  // namespace
}  // namespace dlock::memcached

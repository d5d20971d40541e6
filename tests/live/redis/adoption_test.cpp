// SPDX-License-Identifier: Apache-2.0
//
// A grant that changes process, as its keys show it.
#include <csignal>

#include "dlock/exported_grant.hpp"
#include "testkit/process.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

const std::string kLock = "dlock:{a}";
const std::string kGrant = kLock + "%grant";
const std::string kFence = kLock + "%fence";

class RedisAdoption : public RedisTest {
 protected:
  std::string value() { return client().ask({"GET", kLock}).text; }
  static error_code adopting(LockManager& locks, const std::string& text) {
    error_code ec;
    const auto held = locks.adopt(text, {}, ec);
    return ec;
  }
};

TEST_F(RedisAdoption, WhatStandsInTheServerIsNotTheSecret) {
  auto locks = open("&lease=20s");
  auto other = open("&lease=20s");
  auto held = locks.lock("a")->acquire();
  const auto text = held.export_grant({.within = 5s});
  const auto proof = client().ask({"GET", kGrant}).text;
  EXPECT_EQ(proof.size(), 64U);
  EXPECT_EQ(text.find(proof), std::string::npos);
  EXPECT_LE(client().ask({"PTTL", kGrant}).integer, 5000);
  auto adopted = other.adopt(text);
  EXPECT_EQ(exists(kGrant), 0);
  EXPECT_FALSE(adopted.release());
}

TEST_F(RedisAdoption, ATokenIsHigherThoughTheServerHasForgottenTheLastOne) {
  auto locks = open("&lease=20s");
  auto held = locks.lock("a")->acquire();
  // As from a clock that was ahead.
  const std::uint64_t ahead = 8'000'000'000'000'000;
  EXPECT_FALSE(held.release());
  client().ask({"SET", kFence, std::to_string(ahead - 1)});
  held = locks.lock("a")->acquire();
  ASSERT_EQ(held.token(), ahead);
  const auto text = held.export_grant();
  client().ask({"DEL", kFence});
  auto fresh = open("&lease=20s");
  EXPECT_GT(fresh.adopt(text).token(), ahead);
}

TEST_F(RedisAdoption, WhenItsTimeIsOverTheServerKnowsItToo) {
  auto locks = open("&lease=20s");
  Process exporter({.argv = {DLOCK_BINARY, "--store", redis_url(server_.port(), "&lease=20s"),
                             "hold", "a", "--export", "--within", "500ms"}});
  const auto text = exporter.read_line(patience());
  ASSERT_TRUE(text);
  // It cannot give it back.
  exporter.kill_and_wait();
  const auto over = [&] { return exists(kGrant) == 0; };
  ASSERT_TRUE(eventually(patience(), over));
  ASSERT_TRUE(locks.status("a").held);
  EXPECT_EQ(adopting(locks, *text), errc::not_holder);
  EXPECT_TRUE(locks.status("a").held);
}

TEST_F(RedisAdoption, ALateRenewalAndALateReleaseOfTheExporterChangeNothing) {
  auto behind = open("&lease=1s");
  auto locks = open("&lease=20s");
  const auto text = behind.lock("a")->acquire().export_grant({.within = 400ms});
  auto adopted = locks.adopt(text);
  const auto before = value();
  // Renewals (333 ms) and the release (400 ms) find another's value.
  const auto calls = client().calls("evalsha");
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") >= calls + 1; }));
  behind.close();
  EXPECT_EQ(value(), before);
  EXPECT_EQ(adopted.state(), HandleState::held);
  EXPECT_FALSE(adopted.release());
}

TEST_F(RedisAdoption, AnotherProgramsDataIsLeftAlone) {
  auto locks = open("&lease=20s");
  const auto text = locks.lock("a")->acquire().export_grant();
  client().ask({"DEL", kLock});
  EXPECT_EQ(adopting(locks, text), errc::not_holder);
  client().ask({"SET", kLock, "somebody"});
  EXPECT_EQ(adopting(locks, text), errc::not_holder);
  client().ask({"DEL", kLock});
  client().ask({"HSET", kLock, "a", "b"});
  EXPECT_TRUE(adopting(locks, text));
  EXPECT_EQ(client().ask({"TYPE", kLock}).text, "hash");
}

}  // namespace
}  // namespace dlock::testkit

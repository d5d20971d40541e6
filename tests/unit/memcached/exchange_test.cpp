// SPDX-License-Identifier: Apache-2.0
//
// Answers as they come, piece by piece, and who goes on while others wait.
#include "backends/memcached/wire/exchange.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <vector>

#include "backends/memcached/error.hpp"
#include "backends/memcached/wire/turns.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::memcached {
namespace {

using Progress = Exchange::Progress;

class MemcachedExchange : public testing::Test {
 protected:
  static constexpr Asked kClassic{false, 0, 3};
  static constexpr Asked kMeta{true, 7, 3};

  static Piece line(std::string_view text) { return {text, {}, false}; }
  static Piece data(std::string_view text, std::string_view bytes) { return {text, bytes, true}; }

  tests::VirtualEnv env_;
};

TEST_F(MemcachedExchange, AnswersToMetaCommandsNameTheirRequest) {
  LineExchange ours(env_, kMeta);
  EXPECT_EQ(ours.take(line("HD c41 O7")), Progress::complete);
  EXPECT_TRUE(ours.answer.done());
  EXPECT_EQ(ours.answer.stored.cas, 41U);
  EXPECT_EQ(ours.answer.stored.era, 3U) << "of when it was sent";
  LineExchange anothers(env_, kMeta);
  EXPECT_EQ(anothers.take(line("HD c41 O6")), Progress::lost);
  EXPECT_EQ(anothers.answer.outcome, Outcome::unknown);
  EXPECT_EQ(anothers.answer.failure.error, make_error_code(Error::unexpected));
  LineExchange nobodys(env_, kMeta);
  EXPECT_EQ(nobodys.take(line("HD c41")), Progress::lost);
}

TEST_F(MemcachedExchange, WhatTheServerRefusesKeepsStepOnlyWhereNoDataMayFollow) {
  struct Row {
    const char* said;
    Progress progress;
    Outcome outcome;
  };
  const std::vector<Row> rows{
      {"STORED", Progress::complete, Outcome::done},
      {"NOT_STORED", Progress::complete, Outcome::not_stored},
      {"EXISTS", Progress::complete, Outcome::exists},
      {"NOT_FOUND", Progress::complete, Outcome::not_found},
      {"SERVER_ERROR out of memory storing object", Progress::complete, Outcome::refused},
      {"SERVER_ERROR a proxy's", Progress::complete, Outcome::unknown},
      {"CLIENT_ERROR bad data chunk", Progress::lost, Outcome::refused},
      {"ERROR", Progress::lost, Outcome::refused},
      {"ERROR Too many open connections", Progress::lost, Outcome::unavailable},
      {"VERSION 1.6.18", Progress::lost, Outcome::unknown},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.said);
    LineExchange exchange(env_, kClassic);
    EXPECT_EQ(exchange.take(line(row.said)), row.progress);
    EXPECT_EQ(exchange.answer.outcome, row.outcome);
  }
}

TEST_F(MemcachedExchange, ACounterIsANumberOrNone) {
  NumberExchange classic(env_, kClassic);
  EXPECT_FALSE(classic.expects_data());
  EXPECT_EQ(classic.take(line("42")), Progress::complete);
  EXPECT_EQ(classic.value, 42U);
  NumberExchange meta(env_, kMeta);
  EXPECT_TRUE(meta.expects_data());
  EXPECT_EQ(meta.take(data("VA 2 O7", "43")), Progress::complete);
  EXPECT_EQ(meta.value, 43U);
  NumberExchange anothers(env_, kMeta);
  EXPECT_EQ(anothers.take(data("VA 2 O8", "43")), Progress::lost);
  EXPECT_FALSE(anothers.answer.done());
  NumberExchange none(env_, kMeta);
  EXPECT_EQ(none.take(line("NF O7")), Progress::complete);
  EXPECT_EQ(none.answer.outcome, Outcome::not_found);
  NumberExchange text(env_, kClassic);
  EXPECT_EQ(text.take(line("CLIENT_ERROR cannot increment")), Progress::complete);
  EXPECT_EQ(text.answer.outcome, Outcome::refused);
}

TEST_F(MemcachedExchange, ItemsAreThoseThatWereAskedFor) {
  const std::vector<std::string> keys{"a", "b"};
  ItemsExchange asked(env_, kClassic, keys);
  EXPECT_EQ(asked.take(data("VALUE a 0 1 5", "x")), Progress::more);
  EXPECT_FALSE(asked.is_over());
  EXPECT_EQ(asked.take(line("END")), Progress::complete);
  EXPECT_TRUE(asked.is_over());
  ASSERT_EQ(asked.items.size(), 1U);
  EXPECT_EQ(asked.items["a"].number.cas, 5U);
  EXPECT_EQ(asked.items["a"].number.era, 3U);
  ItemsExchange other(env_, kClassic, keys);
  EXPECT_EQ(other.take(data("VALUE c 0 1 5", "x")), Progress::lost);
}

TEST_F(MemcachedExchange, StatisticsEndWithTheAnswerToTheProbe) {
  ServerInfo known;
  known.version = "1.6.18";
  StatsExchange probed(env_, kClassic, known, true);
  EXPECT_EQ(probed.take(line("STAT maxbytes 1024")), Progress::more);
  EXPECT_EQ(probed.take(line("END")), Progress::more);
  EXPECT_EQ(probed.take(line("MN")), Progress::complete);
  EXPECT_TRUE(probed.has_meta);
  EXPECT_EQ(probed.info.version, "1.6.18");
  StatsExchange plain(env_, kClassic, known, false);
  EXPECT_EQ(plain.take(line("END")), Progress::complete);
  EXPECT_FALSE(plain.has_meta);
  StatsExchange endless(env_, kClassic, known, false);
  auto progress = Progress::more;
  int lines = 0;
  for (; progress == Progress::more && lines < 20'000; ++lines) {
    progress = endless.take(line("STAT a 1"));
  }
  EXPECT_EQ(progress, Progress::lost);
  EXPECT_EQ(lines, 10'001);
}

// Its answer is read to the end, so that the next one is the next request's, and changes nothing.
TEST_F(MemcachedExchange, TheAnswerToWhoGaveUpIsReadAndForgotten) {
  ItemsExchange given_up(env_, kClassic, {"a"});
  given_up.end({Outcome::unknown, failure(Error::no_answer), {}});
  EXPECT_EQ(given_up.take(data("VALUE a 0 1 5", "x")), Progress::more);
  EXPECT_EQ(given_up.take(line("END")), Progress::complete);
  EXPECT_EQ(given_up.answer.failure.error, make_error_code(Error::no_answer));
  EXPECT_TRUE(given_up.items.empty());
  LineExchange late(env_, kMeta);
  late.end({Outcome::unknown, failure(Error::no_answer), {}});
  EXPECT_EQ(late.take(line("HD c1 O7")), Progress::complete);
  EXPECT_EQ(late.answer.outcome, Outcome::unknown);
}

TEST(MemcachedTurns, SoManyGoOnAndTheOthersFollowInOrder) {
  tests::VirtualEnv env;
  Turns turns(env, 2);
  std::vector<std::unique_ptr<Turns::Turn>> all;
  for (int i = 0; i < 5; ++i) all.push_back(std::make_unique<Turns::Turn>(turns));
  const auto ours = [&](std::size_t i) { return all[i]->is_ours(); };
  EXPECT_TRUE(ours(0) && ours(1));
  EXPECT_FALSE(ours(2) || ours(3) || ours(4));
  all[3].reset();  // waits no longer
  all[0].reset();
  EXPECT_TRUE(ours(2));
  EXPECT_FALSE(ours(4));
  all.push_back(std::make_unique<Turns::Turn>(turns));
  EXPECT_FALSE(ours(5)) << "came last";
  all[1].reset();
  EXPECT_TRUE(ours(4));
  EXPECT_FALSE(ours(5));
  all[4].reset();
  EXPECT_TRUE(ours(5));
}

TEST(MemcachedTurns, WhoeverWaitsIsWokenByHisTurnAndByTheEnd) {
  tests::VirtualEnv env;
  Turns turns(env, 1);
  std::vector<bool> told;
  const auto waits = [&](Turns::Turn& turn) -> asio::awaitable<void> {
    const bool is_told = co_await turn.wait(env.now() + std::chrono::seconds(10));
    told.push_back(is_told);
  };
  auto first = std::make_unique<Turns::Turn>(turns);
  Turns::Turn second(turns);
  Turns::Turn third(turns);
  asio::co_spawn(env.executor(), waits(second), asio::detached);
  asio::co_spawn(env.executor(), waits(third), asio::detached);
  env.run_for(std::chrono::seconds(1));
  EXPECT_TRUE(told.empty());
  first.reset();
  env.run_for(std::chrono::seconds(1));
  EXPECT_EQ(told.size(), 1U);
  EXPECT_TRUE(second.is_ours());
  turns.end_waiting();
  env.run_for(std::chrono::seconds(1));
  EXPECT_EQ(told, (std::vector<bool>{true, true}));
  EXPECT_FALSE(third.is_ours());
}

}  // namespace
}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// A Memcached server that lies: honest up to the word that a row is about.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>

#include "testkit/scripted_server.hpp"
#include "tests/live/hostile/hostile.hpp"
#include "tests/live/hostile/small_memcached.hpp"

namespace dlock::hostile {
namespace {

using testkit::ScriptedAnswer;
using testkit::ScriptedServer;

struct Row {
  const char* name;
  const char* word;  ///< the command that is lied to; empty: all
  ScriptedAnswer lie;
};

/// Returns whether the command is about the server, and not about one lock. Those are answered
/// correctly.
bool is_about_the_server(const std::string& line) {
  return line.find("dlock:%") != std::string::npos;
}

ScriptedServer::Script liar(const Row& row) {
  return [row, server = std::make_shared<SmallMemcached>()](std::string& received) {
    ScriptedAnswer all;
    for (auto command = take_command(received); !command.line.empty();
         command = take_command(received)) {
      const std::string word = row.word;
      const bool lied_to = command.line.rfind(word, 0) == 0 && !is_about_the_server(command.line);
      const auto answer = lied_to ? row.lie : ScriptedAnswer{server->answer(command)};
      all.bytes += answer.bytes;
      all.endless = answer.endless;
      all.hang_up = answer.hang_up;
    }
    return all;
  };
}

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class HostileMemcached : public testing::TestWithParam<Row> {};

TEST_P(HostileMemcached, IsNeverBelieved) {
  const ScriptedServer server(liar(GetParam()));
  const auto result =
      attempt(fmt::format("memcached://127.0.0.1:{}?{}", server.port(), kImpatient));
  expect_harmless(result, 64);
  EXPECT_GT(server.connections(), 0U);
}

const Row kRows[] = {
    {"Garbage", "", {"\x01\x02\xff\xfe\r\n"}},
    {"OtherProtocol", "", {"-ERR unknown command\r\n"}},
    {"Silence", "", {}},
    {"HangUp", "", {"", {}, 0, true}},
    {"LineWithoutEnd", "", {"", std::string(65536, 'a')}},
    {"StatsAbsurd", "stats", {"STAT time 99999999999999999999\r\nSTAT version x.y\r\nEND\r\n"}},
    {"AddHalfThenSilence", "ms", {"HD"}},
    {"AddWithoutEnd", "ms", {"", std::string(65536, 'S')}},
    {"AddOfAnotherRequest", "ms", {"HD c5 O1\r\n"}},
    {"AddWithoutTag", "ms", {"HD c5\r\n"}},
    {"AddWithNumber", "ms", {"17\r\n"}},
    {"AddWithValue", "ms", {"VALUE dlock:x 0 3 1\r\nabc\r\nEND\r\n"}},
    {"CountNoNumber", "ma", {"VA 6 O1\r\nbanana\r\n"}},
    {"CountEmpty", "ma", {"\r\n"}},
    {"CountOfAnotherRequest", "ma", {"VA 1 O1\r\n5\r\n"}},
    {"CountNegative", "ma", {"VA -5 O1\r\n"}},
    {"CountBeyondAll", "ma", {"VA 99999999999999999999999 O1\r\n"}},
    {"CountStatus", "ma", {"STORED\r\n"}},
    {"ClassicAddTwice", "mn", {"ERROR\r\nSTORED\r\nSTORED\r\n"}},
};

INSTANTIATE_TEST_SUITE_P(All, HostileMemcached, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

// It is not read to an end that does not come, and neither the acquire nor the end waits for it.
TEST(HostileMemcachedStats, WithoutEndHoldUpNoAcquire) {
  std::string lines;
  while (lines.size() < 65536) lines += "STAT a b\r\n";
  const ScriptedServer server(
      liar({"", "stats", {"", lines, std::numeric_limits<std::size_t>::max()}}));
  const long before = memory_kib("VmRSS");
  auto locks = std::make_optional(LockManager::open(
      fmt::format("memcached://127.0.0.1:{}?{}", server.port(), kImpatient), quiet()));
  error_code error;
  const auto start = testkit::Clock::now();
  const auto handle = locks->lock("orders/42")->acquire({.wait = 1500ms}, {}, error);
  EXPECT_LT(testkit::Clock::now() - start, 10s);
  EXPECT_FALSE(handle);
  EXPECT_EQ(error, errc::protocol) << error.message();
  EXPECT_GT(server.bytes_sent(), lines.size()) << "it was not read";
  const auto end = testkit::Clock::now();
  locks.reset();
  EXPECT_LT(testkit::Clock::now() - end, 10s);
  EXPECT_LT(memory_kib("VmHWM") - before, 64 * 1024);
}

class HostileMemcachedValue : public testing::TestWithParam<Row> {};

// Somebody has the lock, and its value is anything: status says so, and nothing breaks.
TEST_P(HostileMemcachedValue, IsSurvived) {
  const ScriptedServer server(liar(GetParam()));
  const long before = memory_kib("VmRSS");
  const auto start = testkit::Clock::now();
  auto locks = LockManager::open(
      fmt::format("memcached://127.0.0.1:{}?{}", server.port(), kImpatient), quiet());
  try {
    const auto status = locks.status("x");
    EXPECT_LE(status.owner.value_or(Owner{}).host.size(), 4096U);
  } catch (const LockError& error) {
    EXPECT_TRUE(error.code() == errc::unavailable || error.code() == errc::protocol)
        << error.what();
  }
  EXPECT_LT(testkit::Clock::now() - start, 15s);
  EXPECT_LT(memory_kib("VmHWM") - before, 64 * 1024);
}

const Row kValues[] = {
    {"HugeLength", "get", {"VALUE dlock:x 0 4294967295 1\r\nabc"}},
    {"NegativeLength", "get", {"VALUE dlock:x 0 -1 1\r\nabc\r\nEND\r\n"}},
    {"Truncated", "get", {"VALUE dlock:x 0 10 1\r\nabc"}},
    {"OtherKey", "get", {"VALUE other 0 3 1\r\nabc\r\nEND\r\n"}},
    {"Absurd",
     "get",
     {"VALUE dlock:x 0 54 "
      "1\r\ndlock=1\nsince_ms=-9223372036854775808\nlease_ms=12345\n\r\nEND\r\n"}},
};

INSTANTIATE_TEST_SUITE_P(All, HostileMemcachedValue, testing::ValuesIn(kValues),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dlock::hostile

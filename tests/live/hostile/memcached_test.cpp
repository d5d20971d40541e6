// SPDX-License-Identifier: Apache-2.0
//
// A Memcached server that lies: honest up to the word that a row is about.
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>

#include "testkit/scripted_server.hpp"
#include "tests/live/hostile/hostile.hpp"

namespace dlock::hostile {
namespace {

using testkit::ScriptedAnswer;
using testkit::ScriptedServer;

struct Row {
  const char* name;
  const char* word;  ///< the command that is lied to; empty: all
  ScriptedAnswer lie;
};

constexpr const char* kStats =
    "STAT pid 7\r\nSTAT uptime 100\r\nSTAT time 1700000000\r\nSTAT version 1.6.18\r\n"
    "STAT evictions off\r\nEND\r\n";

/// Whose number and tag are what the request says, or nearly.
std::string honest_meta(const std::string& line) {
  const auto tag = line.substr(std::min(line.find(" O"), line.size()));
  const auto end = tag.find(' ', 1);
  if (line.rfind("ma ", 0) == 0) return "NF" + tag.substr(0, end) + "\r\n";
  return "HD c7" + tag.substr(0, end) + "\r\n";
}

std::string honest(const std::string& line) {
  if (line == "mn") return "MN\r\n";
  if (line.rfind("ms ", 0) == 0 || line.rfind("m", 0) == 0) return honest_meta(line);
  if (line.rfind("stats", 0) == 0) return kStats;
  if (line.rfind("version", 0) == 0) return "VERSION 1.6.18\r\n";
  if (line.rfind("get", 0) == 0) return "END\r\n";
  if (line.rfind("incr", 0) == 0) return "NOT_FOUND\r\n";
  if (line.rfind("add", 0) == 0 || line.rfind("cas", 0) == 0) return "STORED\r\n";
  return "ERROR\r\n";
}

struct Command {
  std::string line;
  std::string data;
};

/// A line, and the data behind it if the command has any; empty: more has to come.
Command take_command(std::string& bytes) {
  const auto end = bytes.find("\r\n");
  if (end == std::string::npos) return {};
  const auto line = bytes.substr(0, end);
  std::size_t size = end + 2;
  if (line.rfind("add", 0) == 0 || line.rfind("cas", 0) == 0) {
    // add KEY FLAGS EXPTIME BYTES
    std::size_t at = 0;
    for (int word = 0; word < 4; ++word) at = line.find(' ', at) + 1;
    size += std::stoul(line.substr(at)) + 2;
    if (bytes.size() < size) return {};
  }
  if (line.rfind("ms ", 0) == 0) {
    size += std::stoul(line.substr(line.find(' ', 3) + 1)) + 2;
    if (bytes.size() < size) return {};
  }
  auto data = size > end + 2 ? bytes.substr(end + 2, size - end - 4) : std::string();
  bytes.erase(0, size);
  return {line, std::move(data)};
}

/// What the client keeps there for all its locks; that is never lied about.
class Keys {
 public:
  static bool are_meant(const std::string& line) {
    return line.find("dlock:%") != std::string::npos;
  }

  std::string answer(const Command& command) {
    std::istringstream words(command.line);
    std::string verb;
    std::string key;
    words >> verb >> key;
    const std::lock_guard lock(mutex_);
    if (verb == "add" || verb == "cas" || verb == "ms") values_[key] = command.data;
    if (verb.rfind("get", 0) != 0 || values_.count(key) == 0) return honest(command.line);
    const auto& value = values_[key];
    return fmt::format("VALUE {} 0 {} 1\r\n{}\r\nEND\r\n", key, value.size(), value);
  }

 private:
  std::mutex mutex_;  ///< each connection has a thread of its own
  std::map<std::string, std::string> values_;
};

ScriptedServer::Script liar(const Row& row) {
  return [row, keys = std::make_shared<Keys>()](std::string& received) {
    ScriptedAnswer all;
    for (auto command = take_command(received); !command.line.empty();
         command = take_command(received)) {
      const std::string word = row.word;
      const bool lied_to = command.line.rfind(word, 0) == 0 && !Keys::are_meant(command.line);
      const auto answer = lied_to ? row.lie : ScriptedAnswer{keys->answer(command)};
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

// SPDX-License-Identifier: Apache-2.0
//
// A Redis server that lies: it greets as one does, and then says anything.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "testkit/scripted_server.hpp"
#include "tests/live/hostile/hostile.hpp"
#include "tests/live/hostile/resp.hpp"

namespace dlock::hostile {
namespace {

using testkit::ScriptedAnswer;
using testkit::ScriptedServer;
/// Bytes for a script's call, whose tag is given.
using Lie = std::function<ScriptedAnswer(const std::string& tag)>;

const char* const kInfo =
    "redis_version:7.0.15\r\nrun_id:0123\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n"
    "aof_enabled:1\r\n";

/// What an honest server says to everything but the calls of scripts.
std::string honest(const Words& words, const std::string& info) {
  if (words[0] == "INFO") return info;
  if (words[0] == "CONFIG") return "*2\r\n" + bulk(words[2]) + bulk("always");
  if (words[0] == "EVALSHA") return "-NOSCRIPT No matching script\r\n";
  if (words[0] == "EVAL" || words[0] == "CLIENT" || words[0] == "PUBLISH") return ":1\r\n";
  if (words[0] == "SCRIPT") return bulk(std::string(40, 'a'));
  if (words[0] == "SUBSCRIBE") return "*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":1\r\n";
  return "+OK\r\n";
}

/// Answers the self-test, which is never lied about: one key at a time, and its owner.
class SelfTested {
 public:
  static bool is_meant(const Words& words) {
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.find("%self-test-") != std::string::npos;
    });
  }
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    if (words[0] == "GET") return bulk("17:" + owner_);
    if (words[0] == "SET") return "$-1\r\n";
    const auto& who = words[8];
    const bool acquires = words.size() == 15;  // else release
    // An acquire names the waiter: an instance, a space, and the owner.
    const auto owner = acquires ? who.substr(37) : who;
    if (acquires && owner_.empty()) owner_ = owner;
    const bool is_its = owner == owner_;
    if (!acquires && is_its) owner_.clear();
    const auto tag = bulk(words.back());
    if (acquires && is_its) return "*3\r\n:1\r\n" + bulk("17") + tag;
    if (acquires) return "*5\r\n:0\r\n:-1\r\n:10000\r\n$0\r\n\r\n" + tag;
    return fmt::format("*2\r\n:{}\r\n{}", is_its ? 2 : 0, tag);
  }

 private:
  std::mutex mutex_;
  std::string owner_;
};

ScriptedServer::Script liar(Lie lie, std::string info = bulk(kInfo)) {
  return [lie = std::move(lie), info = std::move(info),
          tested = std::make_shared<SelfTested>()](std::string& received) {
    ScriptedAnswer all;
    for (auto words = take_words(received); !words.empty(); words = take_words(received)) {
      const bool probe = words.size() < 4 || words[2] == "0";
      const bool call = (words[0] == "EVALSHA" || words[0] == "EVAL") && !probe;
      if (SelfTested::is_meant(words)) {
        all.bytes += tested->answer(words);
        continue;
      }
      if (!call) {
        all.bytes += honest(words, info);
        continue;
      }
      auto answer = lie(words.back());
      all.bytes += answer.bytes;
      all.endless = answer.endless;
      all.hang_up = answer.hang_up;
    }
    return all;
  };
}

std::string url(const ScriptedServer& server) {
  return fmt::format("redis://127.0.0.1:{}/0?{}", server.port(), kImpatient);
}

Lie bytes(std::string text) {
  return [text](const std::string&) { return ScriptedAnswer{text}; };
}
Lie tagged(std::string text) {
  return [text](const std::string& tag) { return ScriptedAnswer{text + bulk(tag)}; };
}
Lie endless(std::string start, std::string more) {
  return [=](const std::string&) { return ScriptedAnswer{start, more}; };
}

struct Row {
  const char* name;
  Lie lie;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class HostileRedis : public testing::TestWithParam<Row> {};

TEST_P(HostileRedis, IsNeverBelieved) {
  const ScriptedServer server(liar(GetParam().lie));
  const auto result = attempt(url(server));
  // A reply may have 64 MiB: while it grows it is copied.
  expect_harmless(result, 192);
  EXPECT_GT(server.connections(), 0U);
}

const Row kRows[] = {
    {"StatusForAnArray", bytes("+OK\r\n")},
    {"NumberForAnArray", bytes(":1\r\n")},
    {"StatusForAToken", tagged("*3\r\n:1\r\n+OK\r\n")},
    {"NumberForATokenText", tagged("*3\r\n:1\r\n:17\r\n")},
    {"NilForAToken", tagged("*3\r\n:1\r\n$-1\r\n")},
    {"TokenZero", tagged("*3\r\n:1\r\n$1\r\n0\r\n")},
    {"TokenNegative", tagged("*3\r\n:1\r\n$2\r\n-5\r\n")},
    {"TokenNotANumber", tagged("*3\r\n:1\r\n$3\r\nnan\r\n")},
    {"TokenWithATail", tagged("*3\r\n:1\r\n$4\r\n17 x\r\n")},
    {"TokenTooLarge", tagged("*3\r\n:1\r\n$16\r\n9007199254740992\r\n")},
    {"TokenBeyondAll", tagged("*3\r\n:1\r\n$20\r\n18446744073709551617\r\n")},
    {"AlreadyOursWithoutAToken", tagged("*3\r\n:2\r\n$0\r\n\r\n")},
    {"UnknownCode", tagged("*3\r\n:77\r\n$2\r\n17\r\n")},
    {"GrantWithoutAToken", tagged("*2\r\n:1\r\n")},
    {"SomebodyElsesReply", bytes("*3\r\n:1\r\n$2\r\n17\r\n$3\r\n999\r\n")},
    {"BusyForever",
     tagged("*5\r\n:0\r\n:9223372036854775807\r\n:9223372036854775807\r\n$0\r\n\r\n")},
    {"BusyNegative",
     tagged("*5\r\n:0\r\n:-9223372036854775808\r\n:-9223372036854775808\r\n$0\r\n\r\n")},
    {"NegativeBulk", bytes("$-2\r\n")},
    {"NegativeArray", bytes("*-7\r\n")},
    {"HugeBulk", bytes("$2147483647\r\nx")},
    {"HugeArray", bytes("*2147483647\r\n")},
    {"NumberOutOfRange", bytes(":99999999999999999999999\r\n")},
    {"NotTheProtocol", bytes("HTTP/1.1 400 Bad Request\r\n\r\n")},
    {"HalfAReplyThenSilence", bytes("*3\r\n:1\r\n$2\r\n1")},
    {"HalfAReplyThenTheEnd",
     [](const std::string&) {
       return ScriptedAnswer{"*3\r\n:1\r\n$2\r\n1", {}, 0, true};
     }},
    {"Silence", bytes("")},
    {"ArraysWithoutEnd", endless("", "*1\r\n")},
    {"ALineWithoutEnd", endless("+", std::string(65536, 'a'))},
    {"ABulkWithoutEnd", endless("$536870912\r\n", std::string(65536, 'a'))},
    {"AnArrayWithoutEnd", endless("*999999\r\n", "$1\r\nx\r\n")},
    {"RepliesForNobody", endless("", "+OK\r\n")},
};

INSTANTIATE_TEST_SUITE_P(All, HostileRedis, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

struct InfoRow {
  const char* name;
  std::string reply;
};
void PrintTo(const InfoRow& row, std::ostream* out) { *out << row.name; }

class HostileRedisInfo : public testing::TestWithParam<InfoRow> {};

// Whatever it says of itself, its scripts stay silent here: no grant, no hang.
TEST_P(HostileRedisInfo, IsSurvived) {
  const ScriptedServer server(liar(bytes(""), GetParam().reply));
  expect_harmless(attempt(url(server)), 192);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileRedisInfo,
    testing::Values(
        InfoRow{"Number", ":5\r\n"}, InfoRow{"Nil", "$-1\r\n"}, InfoRow{"Empty", bulk("")},
        InfoRow{"Absurd", bulk("run_id:x\r\nconnected_slaves:-99999999999999999999\r\nloading:9\r\n"
                               "redis_version:\x1b[2J\r\nmaxmemory_policy:\xff\r\n")},
        InfoRow{"Long", bulk(std::string(8 << 20, 'x'))}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(HostileRedisTokens, ThatGoBackAreRefused) {
  std::atomic<int> token{900};
  const ScriptedServer server(liar([&](const std::string& tag) {
    return ScriptedAnswer{"*3\r\n:1\r\n" + bulk(std::to_string(token.load())) + bulk(tag)};
  }));
  auto locks = LockManager::open(url(server), quiet());
  error_code error;
  {
    const auto held = locks.lock("x")->acquire({.wait = 5s}, {}, error);
    ASSERT_TRUE(held) << error.message();
    EXPECT_EQ(held.token(), 900U);
  }
  token = 5;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 5s}, {}, error));
  EXPECT_EQ(error, errc::token_regressed);
}

}  // namespace
}  // namespace dlock::hostile

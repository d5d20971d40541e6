// SPDX-License-Identifier: Apache-2.0
//
// A ZooKeeper server that lies, in the handshake or after it.
#include <fmt/format.h>

#include "testkit/scripted_server.hpp"
#include "tests/live/hostile/hostile.hpp"
#include "tests/live/hostile/zookeeper.hpp"

namespace dlock::hostile {
namespace {

using testkit::ScriptedAnswer;
using testkit::ScriptedServer;

std::string frame(const std::string& body) {
  return number(static_cast<std::int32_t>(body.size())) + body;
}

/// Version, timeout, session, password, not read-only.
std::string handshake(std::int32_t timeout_ms = 10'000, std::int32_t password = 16) {
  return frame(number(0) + number(timeout_ms) + std::string("\0\0\0\1\0\0\0\1", 8) +
               number(password) + std::string(16, 'p') + std::string(1, '\0'));
}

/// xid, zxid, error.
std::string header(std::int32_t xid, std::int32_t error = 0) {
  return number(xid) + std::string(8, '\0') + number(error);
}

struct Row {
  const char* name;
  ScriptedAnswer first;
  ScriptedAnswer later;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class HostileZooKeeper : public testing::TestWithParam<Row> {};

TEST_P(HostileZooKeeper, IsNeverBelieved) {
  const auto row = GetParam();
  const ScriptedServer server([row](std::string& received) {
    // A connect request has 44 or 45 bytes behind its length; a four-letter word is shorter.
    const bool first = received.size() >= 4 && received.substr(0, 3) == std::string(3, '\0') &&
                       received.substr(4, 4) == std::string(4, '\0');
    received.clear();
    return first ? row.first : row.later;
  });
  const auto result =
      attempt(fmt::format("zookeeper://127.0.0.1:{}/app?{}", server.port(), kImpatient));
  expect_harmless(result, 64);
  EXPECT_GT(server.connections(), 0U);
}

const Row kRows[] = {
    {"Silence", {}, {}},
    {"HangUp", {"", {}, 0, true}, {}},
    {"NegativeHandshake", {number(-1)}, {}},
    {"HugeHandshake", {number(INT32_MAX) + std::string(100, 'x')}, {}},
    {"TextHandshake", {"HTTP/1.1 400 Bad Request\r\n\r\n"}, {}},
    {"NegativePassword", {handshake(10'000, -5)}, {}},
    {"HugePassword", {handshake(10'000, INT32_MAX)}, {}},
    {"NegativeTimeout", {handshake(-10'000)}, {}},
    {"HugeTimeout", {handshake(INT32_MAX)}, {}},
    {"NoTimeout", {handshake(0)}, {}},
    {"SilenceAfterIt", {handshake()}, {}},
    {"NegativeFrame", {handshake()}, {number(-1)}},
    {"HugeFrame", {handshake()}, {number(INT32_MAX) + "abc"}},
    {"EmptyFrame", {handshake()}, {number(0)}},
    {"HalfAFrame", {handshake()}, {number(100) + "abc"}},
    {"WrongXid", {handshake()}, {frame(header(77'777))}},
    {"ZerosWithoutEnd", {handshake()}, {"", std::string(65536, '\0')}},
    {"NoiseWithoutEnd", {handshake()}, {"", std::string(65536, 'z')}},
};

INSTANTIATE_TEST_SUITE_P(All, HostileZooKeeper, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dlock::hostile

// SPDX-License-Identifier: Apache-2.0
//
// A ZooKeeper server that speaks the protocol, and lies about how much there is: whole frames with
// the right xid whose counts and lengths cannot be. What the C library itself does not bear
// (docs/security.md) is not among them.
#include <fmt/format.h>

#include "testkit/scripted_server.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/hostile/hostile.hpp"
#include "tests/live/hostile/zookeeper.hpp"

namespace dlock::hostile {
namespace {

using testkit::ScriptedAnswer;
using testkit::ScriptedServer;
namespace opcode = testkit::opcode;

std::string buffer(const std::string& text) {
  return number(static_cast<std::int32_t>(text.size())) + text;
}
std::string frame(const std::string& body) { return buffer(body); }

/// Of a node: czxid 1, everything else 0.
const std::string kStat = std::string(7, '\0') + '\1' + std::string(60, '\0');
/// A transaction of one `check` that was carried out.
const std::string kChecked =
    number(opcode::check) + '\0' + number(0) + number(-1) + '\1' + number(-1);
/// Somebody who holds every lock.
const std::string kHolder = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000";

struct Row {
  const char* name;
  std::int32_t lied_to;  ///< the request
  std::string lie;       ///< the reply behind its header
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

/// The reply's body, for a server that has one contender in every node.
std::string honest(std::int32_t what, const std::string& request) {
  switch (what) {
    case opcode::create2:
    case opcode::create_container: {
      const auto made = request.substr(12, static_cast<std::size_t>(number_at(request, 8)));
      return buffer(made + (what == opcode::create2 ? "0000000001" : "")) + kStat;
    }
    case opcode::get_children:
      return number(1) + buffer(kHolder);
    case opcode::get_children2:
      return number(1) + buffer(kHolder) + kStat;
    case opcode::get_data:
      return buffer("dlock=1\nid=somebody\n") + kStat;
    case opcode::exists:
    case opcode::set_data:
      return kStat;
    case opcode::sync:
      return buffer("/");
    case opcode::multi:
      return kChecked;
    default:
      return {};
  }
}

ScriptedServer::Script liar(const Row& row) {
  return [row](std::string& received) {
    ScriptedAnswer answer;
    while (received.size() >= 4) {
      const auto size = static_cast<std::size_t>(number_at(received, 0));
      if (size > 65536) {  // a four-letter word
        answer.hang_up = true;
        break;
      }
      if (received.size() < 4 + size) break;
      const auto request = received.substr(4, size);
      received.erase(0, 4 + size);
      if (number_at(request, 0) == 0) {  // the handshake; what it asks for is granted
        answer.bytes +=
            frame(number(0) + request.substr(12, 4) + std::string("\0\0\0\1\0\0\0\1", 8) +
                  buffer(std::string(16, 'p')) + '\0');
        continue;
      }
      const auto what = number_at(request, 4);
      const auto header = request.substr(0, 4) + std::string(7, '\0') + '\1' + number(0);
      answer.bytes += frame(header + (what == row.lied_to ? row.lie : honest(what, request)));
    }
    return answer;
  };
}

class HostileZooKeeperCounts : public testing::TestWithParam<Row> {};

// One is refused, the other may not be told at all: whatever comes of it, nothing is granted, all
// is over in time, and no memory is taken for what is not there.
TEST_P(HostileZooKeeperCounts, AreNeverBelieved) {
  const ScriptedServer server(liar(GetParam()));
  const auto url = fmt::format("zookeeper://127.0.0.1:{}/app?{}", server.port(), kImpatient);
  const auto result = attempt(url);
  expect_harmless(result, 64);
  EXPECT_GT(server.connections(), 0U);
  const auto start = testkit::Clock::now();
  const long before = memory_kib("VmRSS");
  try {
    auto locks = LockManager::open(url, quiet());
    const auto status = locks.status("orders/42");
    EXPECT_LE(status.waiting.size(), 1U);
    EXPECT_LE(status.owner.value_or(Owner{}).id.size(), 1024U);
  } catch (const LockError& error) {
    EXPECT_TRUE(error.code() == errc::unavailable || error.code() == errc::protocol)
        << error.what();
  }
  EXPECT_LT(testkit::Clock::now() - start, 15s);
  EXPECT_LT(memory_kib("VmHWM") - before, 64 * 1024);
}

const Row kRows[] = {
    {"Nothing", 0, {}},
    {"ChildrenEmpty", opcode::get_children2, {}},
    {"ChildrenNegative", opcode::get_children2, number(-1)},
    {"ChildrenVeryNegative", opcode::get_children2, number(INT32_MIN)},
    {"ChildrenMore", opcode::get_children2, number(1000) + buffer(kHolder)},
    {"ChildLong", opcode::get_children2, number(1) + number(INT32_MAX) + kHolder},
    {"ChildBeyondTheFrame", opcode::get_children2, number(1) + number(100) + kHolder},
    {"ChildNegative", opcode::get_children2, number(1) + number(-1)},
    {"ChildVeryNegative", opcode::get_children2, number(1) + number(INT32_MIN) + kHolder},
    {"PathWithoutStat", opcode::create2, buffer("/app/orders/42/x")},
    {"DataNegative", opcode::get_data, number(-1)},
    {"DataVeryNegative", opcode::get_data, number(INT32_MIN) + kStat},
    {"DataWithoutStat", opcode::get_data, buffer("dlock=1")},
    {"SyncLong", opcode::sync, number(INT32_MAX)},
    {"SyncVeryNegative", opcode::sync, number(INT32_MIN)},
};

INSTANTIATE_TEST_SUITE_P(All, HostileZooKeeperCounts, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dlock::hostile

// SPDX-License-Identifier: Apache-2.0
//
// One renewal whose request or reply is lost, or whose reply arrives 6 s late, while the connection
// stays open: no holder, no leader and no `dlock run` loses its lock. DLOCK_TEST_LEASE_S (default
// 6) is the lease in seconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "dlock/leader.hpp"
#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/process.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

enum class Loss { request, reply, late_reply };

constexpr auto kLate = 6s;

std::chrono::milliseconds lease() {
  const char* const seconds = std::getenv("DLOCK_TEST_LEASE_S");
  return std::chrono::seconds(seconds == nullptr ? 6 : std::atoi(seconds));
}

/// A link that loses the next renewal once it is armed.
class LossyLink {
 public:
  LossyLink(std::string backend, std::uint16_t port, Loss loss)
      : backend_(std::move(backend)), loss_(loss), proxy_(port) {
    proxy_.on_data([this](Direction direction, ConnectionId connection, std::string_view bytes) {
      return verdict(direction, connection, bytes);
    });
  }

  std::uint16_t port() const { return proxy_.port(); }
  void arm() { armed_ = true; }
  bool has_lost() const { return lost_; }
  void deliver() { proxy_.release_held(); }

 private:
  Verdict verdict(Direction direction, ConnectionId connection, std::string_view bytes) {
    if (direction == Direction::to_server) {
      if (!armed_ || !is_renewal(bytes)) return Verdict::forward;
      armed_ = false;
      if (loss_ == Loss::request) {
        lost_ = true;
        return Verdict::swallow;
      }
      reply_on_ = connection;
      return Verdict::forward;
    }
    if (reply_on_ != connection) return Verdict::forward;
    reply_on_ = 0;
    lost_ = true;
    return loss_ == Loss::reply ? Verdict::swallow : Verdict::hold;
  }

  bool is_renewal(std::string_view bytes) const {
    constexpr std::size_t kOpcodeEnds = 11;  // behind length and xid
    constexpr char kPing = 11;
    if (backend_ == "zookeeper") return bytes.size() > kOpcodeEnds && bytes[kOpcodeEnds] != kPing;
    return backend_ != "redis" || bytes.find("EVALSHA") != std::string_view::npos;
  }

  const std::string backend_;
  const Loss loss_;
  std::atomic<bool> armed_ = false;
  std::atomic<bool> lost_ = false;
  ConnectionId reply_on_ = 0;  ///< the proxy's thread only
  FaultProxy proxy_;
};

struct Row {
  std::string backend;
  Loss loss;
};

class LostRenewal : public testing::TestWithParam<Row> {
 protected:
  std::string url(const LossyLink& link) const {
    const auto time = std::to_string(lease().count()) + "ms";
    const bool by_session = GetParam().backend == "zookeeper";
    return GetParam().backend + "://127.0.0.1:" + std::to_string(link.port()) +
           (by_session ? "/app?session_timeout=" : "?lease=") + time;
  }
  std::uint16_t server_port() const {
    const std::string host = "127.0.0.1:";
    return static_cast<std::uint16_t>(
        std::stoul(store_.url.substr(store_.url.find(host) + host.size())));
  }

  const RunningStore store_ = start_store(GetParam().backend);
};

TEST_P(LostRenewal, CostsNeitherALockNorALead) {
  LossyLink of_holder(GetParam().backend, server_port(), GetParam().loss);
  LossyLink of_leader(GetParam().backend, server_port(), GetParam().loss);
  LossyLink of_command(GetParam().backend, server_port(), GetParam().loss);
  auto locks = LockManager::open(url(of_holder));
  auto stage = LockManager::open(url(of_leader));
  ProcessOptions run;
  run.argv = {DLOCK_BINARY, "-q", "--store", url(of_command),       "run", "job",
              "--",         "sh", "-c",      "echo ready; read end"};
  run.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  Process command(run);
  ASSERT_EQ(command.read_line(patience()), "ready") << command.collected_stderr();
  auto held = locks.lock("held")->acquire();
  LeaderOptions options;
  if (GetParam().backend != "zookeeper") options.times.lease = lease();
  std::atomic<int> leads = 0;
  options.on_event = [&](const LeaderEvent& event) {
    if (event.kind == LeaderEvent::Kind::elected) ++leads;
  };
  Leader leader(stage, "led", nullptr, options);
  leader.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));

  const auto links = {&of_holder, &of_leader, &of_command};
  for (auto* link : links) link->arm();
  ASSERT_TRUE(eventually(within(lease()), [&] {
    return std::all_of(links.begin(), links.end(), [](auto* link) { return link->has_lost(); });
  })) << "no renewal was sent";
  const auto is_lost = [&] {
    return held.state() == HandleState::lost || !leader.is_leader() || !command.running();
  };
  const auto lost_at = Clock::now();
  EXPECT_FALSE(eventually(lost_at + kLate, is_lost));
  for (auto* link : links) link->deliver();
  EXPECT_FALSE(eventually(lost_at + std::max<Clock::duration>(lease(), kLate + 1s), is_lost));
  EXPECT_TRUE(eventually(within(lease()), [&] { return held.state() == HandleState::held; }));
  EXPECT_TRUE(leader.is_leader());
  EXPECT_EQ(leads, 1);
  command.write("end\n");
  const auto status = command.wait(patience());
  EXPECT_EQ(status.value_or(ExitStatus{}).shell_status(), 0) << command.collected_stderr();
  leader.resign();
  EXPECT_FALSE(held.release());
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const std::string backend : {"zookeeper", "redis", "memcached"}) {
    for (const auto loss : {Loss::request, Loss::reply, Loss::late_reply}) {
      rows.push_back({backend, loss});
    }
  }
  return rows;
}

std::string name_of(const testing::TestParamInfo<Row>& row) {
  const char* const what = row.param.loss == Loss::request ? "Request"
                           : row.param.loss == Loss::reply ? "Reply"
                                                           : "LateReply";
  return row.param.backend + what;
}

INSTANTIATE_TEST_SUITE_P(Stores, LostRenewal, testing::ValuesIn(all_rows()), name_of);

}  // namespace
}  // namespace dlock::testkit

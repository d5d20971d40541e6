// SPDX-License-Identifier: Apache-2.0
//
// The margin that a command has between its SIGTERM and the end of the lock: what dlock says of it,
// and what it is, measured from outside.
#include <mutex>
#include <string>

#include "dlock/clock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Direction;
using testkit::Process;
using testkit::Verdict;

/// When the last request was seen that was answered, and from when on none is.
class Renewals {
 public:
  testkit::DataHook hook() {
    return [this](Direction direction, testkit::ConnectionId, std::string_view) {
      const std::lock_guard lock(mutex_);
      if (direction == Direction::to_server) {
        last_seen_ = BoottimeClock::now();
        return Verdict::forward;
      }
      if (silent_) return Verdict::swallow;
      last_answered_ = last_seen_;
      ++answers_;
      return Verdict::forward;
    };
  }
  TimePoint fall_silent() {
    const std::lock_guard lock(mutex_);
    silent_ = true;
    return last_answered_;
  }
  int answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }

 private:
  std::mutex mutex_;
  TimePoint last_seen_;
  TimePoint last_answered_;
  int answers_ = 0;
  bool silent_ = false;
};

class CliMargin : public testing::Test {
 protected:
  static constexpr auto kLease = 4s;
  static constexpr auto kDrift = 40ms;  // 1 % of the lease

  void SetUp() override {
    server_.start();
    proxy_.emplace(server_.port());
    proxy_->on_data(renewals_.hook());
  }
  std::unique_ptr<Process> run(std::vector<std::string> options) {
    std::vector<std::string> arguments{"run", "x"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", DLOCK_TOLD_PROGRAM});
    auto process = std::make_unique<Process>(dlock_on(
        "redis://127.0.0.1:" + std::to_string(proxy_->port()) + "/0?lease=4s&release_timeout=500ms",
        arguments));
    EXPECT_EQ(process->read_line(patience()), "ready") << process->collected_stderr();
    // Renewed at least once.
    const auto answers = renewals_.answers();
    EXPECT_TRUE(testkit::eventually(patience(), [&] { return renewals_.answers() > answers; }));
    return process;
  }
  /// The moment that the command was told.
  static TimePoint told(Process& process) {
    const auto line = process.read_line(patience()).value_or("0");
    return TimePoint(Duration(std::stoll(line)));
  }
  /// No local deadline is later: it counts from before the last answered request was sent.
  static TimePoint latest_end(TimePoint last_answered) { return last_answered + kLease - kDrift; }

  testkit::RedisServer server_;
  Renewals renewals_;
  std::optional<testkit::FaultProxy> proxy_;
};

TEST_F(CliMargin, IsShownInJsonAndIsKept) {
  const auto process = run({"--json", "--kill-after", "1500ms"});
  const auto last = renewals_.fall_silent();
  const auto when = told(*process);
  ASSERT_EQ(process->wait(patience())->shell_status(), 76);
  const auto text_of = process->collected_stderr();
  const auto begin = text_of.find(R"({"event":"terminating")");
  ASSERT_NE(begin, std::string::npos) << text_of;
  const auto event =
      boost::json::parse(text_of.substr(begin, text_of.find('\n', begin) - begin)).as_object();
  const std::chrono::milliseconds margin(event.at("margin_ms").to_number<std::int64_t>());
  EXPECT_EQ(margin, 1500ms) << "as --kill-after asks for";
  EXPECT_GT(event.at("remaining_ms").to_number<std::int64_t>(), 0);
  EXPECT_EQ(text(event, "name"), "x");
  EXPECT_TRUE(event.at("token").is_number());
  EXPECT_TRUE(event.at("reason").is_null()) << "not lost yet";
  EXPECT_LE(when + margin, latest_end(last));
  EXPECT_GT(when + margin + 1s, latest_end(last)) << "nor much too early";
}

TEST_F(CliMargin, IsShownInWords) {
  const auto process = run({});
  const auto last = renewals_.fall_silent();
  const auto when = told(*process);
  EXPECT_LE(when + 1s, latest_end(last));
  ASSERT_EQ(process->wait(patience())->shell_status(), 76);
  EXPECT_NE(process->collected_stderr().find("ending the command, 1000 ms before that at least"),
            std::string::npos)
      << process->collected_stderr();
}

}  // namespace
}  // namespace dlock::cli_test

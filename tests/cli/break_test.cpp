// SPDX-License-Identifier: Apache-2.0
//
// `dlock break` on real stores. A log that both commands write shows when each of them was alive.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

/// A store that frees a silent holder's lock after the lease in its URL.
struct BreakableStore {
  const char* name;
  std::unique_ptr<testkit::Server> (*make)();
  const char* suffix;  ///< end of its URL
};

template <class Server>
std::unique_ptr<testkit::Server> make_server() {
  return std::make_unique<Server>();
}

std::unique_ptr<testkit::Server> make_ensemble() {
  return std::make_unique<testkit::ZooKeeperServer>(testkit::ZooKeeperOptions{.tick = 300ms});
}

std::vector<BreakableStore> breakable_stores() {
  std::vector<BreakableStore> stores{
      {"redis", make_server<testkit::RedisServer>, "?lease=6s"},
      {"memcached", make_server<testkit::MemcachedServer>, "?lease=6s"},
      {"zookeeper", make_ensemble, "app?session_timeout=6s"},
  };
  const auto built_in = OpenOptions::built_in().backends;
  std::erase_if(stores, [&](const BreakableStore& store) {
    return std::none_of(built_in.begin(), built_in.end(), [&](const BackendDescriptor* backend) {
      return backend->name == store.name;
    });
  });
  return stores;
}

class CliBreakWait : public testing::TestWithParam<BreakableStore> {
 protected:
  void SetUp() override { server_->start(); }
  std::string url() const { return server_->url() + GetParam().suffix; }
  std::string log() const { return (folder_.path() / "alive").string(); }

  /// A command under the lock that writes its name and the time until it is ended.
  std::unique_ptr<Process> run(const std::string& who) {
    const auto script = "trap 'exit 7' TERM; while :; do echo " + who + " $(date +%s%N) >> " +
                        log() + "; sleep 0.02; done";
    return std::make_unique<Process>(
        dlock_on(url(), {"run", "x", "--wait", "60s", "--", "sh", "-c", script}));
  }
  /// The last or the first moment at which a command was seen alive, in ns. 0: never.
  std::int64_t seen(const std::string& who, bool last) const {
    std::ifstream file(log());
    std::int64_t found = 0;
    std::string name;
    std::int64_t when = 0;
    while (file >> name >> when) {
      if (name != who) continue;
      if (found == 0 || last) found = when;
    }
    return found;
  }
  bool becomes_alive(const std::string& who) const {
    return testkit::eventually(patience(), [&] { return seen(who, true) != 0; });
  }
  std::string token() const {
    const auto status = status_of(url(), "x");
    return std::to_string(status.at("token").to_number<std::uint64_t>());
  }
  testkit::ProcessOptions break_it(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"break", "x", "--token", token(), "--reason", "stuck"});
    return dlock_on(url(), more);
  }

  const std::unique_ptr<testkit::Server> server_ = GetParam().make();
  const testkit::TempDir folder_{"dlock-cli-test"};
};
INSTANTIATE_TEST_SUITE_P(Stores, CliBreakWait, testing::ValuesIn(breakable_stores()),
                         [](const auto& store) { return store.param.name; });

TEST_P(CliBreakWait, AStoppedHolderThatWakesEndsItsCommandBeforeTheNextOneBegins) {
  auto holder = run("first");
  ASSERT_TRUE(becomes_alive("first"));
  auto next = run("second");
  ::kill(holder->pid(), SIGSTOP);  // its command runs on
  Process breaking(break_it());
  EXPECT_FALSE(testkit::eventually(within(500ms), [&] { return seen("second", true) != 0; }));
  ::kill(holder->pid(), SIGCONT);
  const auto broken = breaking.wait(patience());
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->shell_status(), 0) << breaking.collected_stderr();
  EXPECT_EQ(holder->wait(patience())->shell_status(), 76);
  EXPECT_NE(holder->collected_stderr().find(": stuck"), std::string::npos)
      << holder->collected_stderr();
  ASSERT_TRUE(becomes_alive("second"));
  EXPECT_LT(seen("first", true), seen("second", false));
}

TEST_P(CliBreakWait, AHolderThatStaysStoppedKeepsTheLockUntilItsExpiry) {
  Process holder(dlock_on(url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  auto next = run("second");
  ::kill(holder.pid(), SIGSTOP);
  const auto begun = std::chrono::steady_clock::now();
  Process breaking(break_it());
  const auto broken = breaking.wait(patience());
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->shell_status(), 0) << breaking.collected_stderr();
  EXPECT_GT(std::chrono::steady_clock::now() - begun, 3s);
  EXPECT_NE(breaking.collected_stderr().find("x: marked; waiting until its holder has released it"),
            std::string::npos)
      << breaking.collected_stderr();
  ASSERT_TRUE(becomes_alive("second"));
  ::kill(holder.pid(), SIGCONT);
  EXPECT_EQ(text(read_event(holder), "event"), "lost");
}

TEST_P(CliBreakWait, AnInterruptedBreakLeavesTheMark) {
  Process holder(dlock_on(
      url(), {"run", "x", "--on-lost", "warn", "--", "sh", "-c", "echo ready; read line"}));
  EXPECT_EQ(holder.read_line(patience()), "ready");
  Process breaking(break_it());
  ASSERT_TRUE(testkit::eventually(patience(),
                                  [&] { return status_of(url(), "x").at("broken").is_object(); }));
  const auto mark = status_of(url(), "x").at("broken").as_object();
  EXPECT_EQ(text(mark, "reason"), "stuck");
  ::kill(breaking.pid(), SIGINT);
  EXPECT_EQ(breaking.wait(patience())->shell_status(), 130);
  EXPECT_NE(breaking.collected_stderr().find("interrupted; the mark stays"), std::string::npos)
      << breaking.collected_stderr();
  const auto bounded = finish(break_it({"--wait", "100ms", "--json"}));
  EXPECT_EQ(bounded.status.shell_status(), 75) << bounded.err;
  EXPECT_NE(bounded.out.find(R"({"event":"marked","name":"x")"), std::string::npos) << bounded.out;
  ASSERT_TRUE(testkit::eventually(patience(), [&] {
    return holder.collected_stderr().find("is lost (broken by ") != std::string::npos;
  })) << holder.collected_stderr();
  holder.write("end\n");
  EXPECT_EQ(holder.wait(patience())->shell_status(), 76);
  EXPECT_TRUE(testkit::eventually(within(2s), [&] { return !is_held(url(), "x"); }));
}

TEST_P(CliBreakWait, ASignalBeforeTheFirstAnswerEndsItAndSaysThatTheLockMayBeBroken) {
  Process holder(dlock_on(url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  const auto options = break_it();
  server_->pause();
  Process breaking(options);
  EXPECT_TRUE(breaking.stderr_shows("waiting for an answer of the store", patience()));
  ::kill(breaking.pid(), SIGINT);
  const auto ended = breaking.wait(within(3s));
  server_->resume();
  ASSERT_TRUE(ended) << breaking.collected_stderr();
  EXPECT_EQ(ended->shell_status(), 130);
  EXPECT_NE(breaking.collected_stderr().find("the lock may be broken"), std::string::npos)
      << breaking.collected_stderr();
}

TEST_P(CliBreakWait, AnExportThatIsBrokenIsNotReportedAsAdopted) {
  Process holder(dlock_on(url(), {"hold", "x", "--export", "--within", "60s"}));
  if (std::string_view(GetParam().name) == "zookeeper") {
    EXPECT_EQ(holder.wait(patience())->shell_status(), 64) << "it has no exports";
    return;
  }
  ASSERT_TRUE(holder.read_line(patience()));
  EXPECT_EQ(finish(break_it({"--wait", "0"})).status.shell_status(), 75);
  EXPECT_EQ(holder.wait(patience())->shell_status(), 76);
  EXPECT_NE(holder.collected_stderr().find("x: broken by an operator"), std::string::npos)
      << holder.collected_stderr();
}

TEST_P(CliBreakWait, NowFreesItAtOnceAndSaysHowLongTheOldHolderMayWork) {
  Process holder(dlock_on(
      url(), {"run", "x", "--on-lost", "warn", "--", "sh", "-c", "echo ready; read line"}));
  EXPECT_EQ(holder.read_line(patience()), "ready");
  auto next = run("second");
  const auto broken = finish(break_it({"--now"}));
  EXPECT_EQ(broken.status.shell_status(), 0) << broken.err;
  EXPECT_NE(broken.out.find("the old holder may still work for "), std::string::npos) << broken.out;
  ASSERT_TRUE(becomes_alive("second"));
  EXPECT_FALSE(holder.wait(within(0s))) << "its command goes on";
}

TEST(CliBreakForeign, ARecordOfAnotherProgramNeedsNow) {
  testkit::MemcachedServer server;
  server.start();
  const auto url = server.url() + "?lease=6s";
  {
    Process holder(dlock_on(url, {"hold", "x"}));
    EXPECT_EQ(text(read_event(holder), "event"), "held");
    holder.close_stdin();
    holder.wait(patience());
  }
  const auto store =
      "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(server.port()) +
      "; printf 'set dlock:x 0 0 8\\r\\nnot ours\\r\\n' >&3; read -r said <&3; echo $said";
  testkit::ProcessOptions writer;
  writer.argv = {"bash", "-c", store};
  EXPECT_EQ(finish(writer).out, "STORED\r\n");
  const auto shown = status_of(url, "x");
  const auto token = std::to_string(shown.at("token").to_number<std::uint64_t>());
  const auto refused = finish(dlock_on(url, {"break", "x", "--token", token}));
  EXPECT_EQ(refused.status.shell_status(), 64);
  EXPECT_NE(refused.err.find("--now"), std::string::npos) << refused.err;
  EXPECT_TRUE(is_held(url, "x"));
  EXPECT_EQ(finish(dlock_on(url, {"break", "x", "--token", token, "--now"})).status.code, 0);
  EXPECT_FALSE(is_held(url, "x"));
}

}  // namespace
}  // namespace dlock::cli_test

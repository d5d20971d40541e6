// SPDX-License-Identifier: Apache-2.0
//
// `dlock run` ends its command after a loss wherever it runs: without /proc, with a /proc that
// hides processes, and in a pid namespace.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

/// A script that replaces itself by dlock, in new namespaces. Only /proc is made private, since the
/// root of a chroot is not a mount.
struct Place {
  const char* name;
  std::vector<std::string> unshare;
  const char* setup;
  bool shows_descendants = true;
};

const std::vector<Place>& places() {
  static const std::vector<Place> all{
      {"no /proc",
       {"-m"},
       "mount --make-private /proc && mount -t tmpfs none /proc && exec \"$@\"",
       false},
      {"hidepid=2",
       {"-m"},
       "mount --make-private /proc && mount -t proc -o hidepid=2 proc /proc && "
       "exec setpriv --bounding-set -sys_ptrace \"$@\""},
      {"pid namespace", {"-pf", "--mount-proc", "--kill-child"}, "exec \"$@\""},
      {"pid namespace with an outer /proc", {"-pf", "--kill-child"}, "exec \"$@\""},
  };
  return all;
}

testkit::ProcessOptions inside(const Place& place, testkit::ProcessOptions options) {
  std::vector<std::string> argv{"unshare", "--propagation", "unchanged"};
  argv.insert(argv.end(), place.unshare.begin(), place.unshare.end());
  argv.insert(argv.end(), {"sh", "-c", place.setup, "sh"});
  argv.insert(argv.end(), options.argv.begin(), options.argv.end());
  options.argv = std::move(argv);
  return options;
}

std::unique_ptr<testkit::Server> make_server(const std::string& store) {
  if (store == "redis") return std::make_unique<testkit::RedisServer>();
  if (store == "memcached") return std::make_unique<testkit::MemcachedServer>();
  return std::make_unique<testkit::ZooKeeperServer>(testkit::ZooKeeperOptions{.tick = 300ms});
}

/// A pipe that is at its end when no process has its writing side any more.
class Users {
 public:
  Users() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Users() {
    close_own();
    ::close(ends_[0]);
  }
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;
  int descriptor() const { return ends_[1]; }
  void close_own() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  bool end(testkit::Deadline deadline) const {
    return testkit::eventually(deadline, [&] {
      pollfd polled{ends_[0], POLLIN, 0};
      return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
    });
  }

 private:
  std::array<int, 2> ends_{};
};

class CliEnding : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::vector<std::string> probe{"unshare", "--propagation", "unchanged",
                                         "-m",      "-pf",           "true"};
    if (finish({.argv = probe}).status.shell_status() != 0) {
      GTEST_SKIP() << "this user cannot make namespaces: run as root";
    }
    server_->start();
  }
  std::string url() const {
    const bool is_zookeeper = std::string_view(GetParam()) == "zookeeper";
    return server_->url() +
           (is_zookeeper ? "app?session_timeout=3s" : "?lease=3s&accept=best_effort");
  }

  const std::unique_ptr<testkit::Server> server_ = make_server(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Stores, CliEnding, testing::Values("redis", "memcached", "zookeeper"),
                         [](const auto& store) { return std::string(store.param); });

TEST_P(CliEnding, TheCommandOfALostLockEndsInTimeWhateverProcShows) {
  constexpr auto kKillAfter = 500ms;
  const std::string deaf = "trap '' TERM; while :; do sleep 0.05; done";
  std::vector<std::unique_ptr<Process>> runs;
  std::vector<std::unique_ptr<Users>> users;
  for (const auto& place : places()) {
    const auto script = place.shows_descendants
                            ? "(" + deaf + ") & echo ready; " + deaf
                            : "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    users.push_back(std::make_unique<Users>());
    auto options =
        inside(place, dlock_on(url(), {"run", "job/" + std::to_string(runs.size()), "--kill-after",
                                       "500ms", "--", "sh", "-c", script}));
    options.keep_fds = {users.back()->descriptor()};
    runs.push_back(std::make_unique<Process>(options));
    users.back()->close_own();
    ASSERT_EQ(runs.back()->read_line(patience()), "ready")
        << place.name << ": " << runs.back()->collected_stderr();
  }
  server_->pause();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(places()[i].name);
    auto& run = *runs[i];
    EXPECT_TRUE(run.stderr_shows("ending the command", patience())) << run.collected_stderr();
    EXPECT_TRUE(users[i]->end(within(kKillAfter + 1s)))
        << "the command or a descendant runs on: " << run.collected_stderr();
    const auto status = run.wait(within(3s));
    ASSERT_TRUE(status) << "it waits for a release: " << run.collected_stderr();
    EXPECT_EQ(status->shell_status(), 76);
    EXPECT_NE(run.collected_stderr().find("was killed"), std::string::npos)
        << run.collected_stderr();
    EXPECT_EQ(run.collected_stderr().find("/proc does not show") == std::string::npos,
              places()[i].shows_descendants)
        << run.collected_stderr();
  }
  server_->resume();
}

TEST_P(CliEnding, ANestedRunInAPidNamespaceNamesTheNamespaceOfTheOuterPid) {
  const auto inner = inside(places().back(), dlock_on(url(), {"run", "job", "--", "true"}));
  std::vector<std::string> outer{"run", "job", "--"};
  outer.insert(outer.end(), inner.argv.begin(), inner.argv.end());
  const auto refused = finish(dlock_on(url(), outer));
  EXPECT_EQ(refused.status.shell_status(), 64) << refused.err;
  EXPECT_NE(refused.err.find(" in another pid namespace) holds it"), std::string::npos)
      << refused.err;
}

// As a set-user-ID program: a signal of this dlock does not reach it.
TEST_P(CliEnding, ACommandThatCannotBeEndedIsNotCalledKilled) {
  auto options = dlock_on(url(), {"run", "job", "--kill-after", "200ms", "--", "setpriv", "--reuid",
                                  "65534", "--clear-groups", "sh", "-c", "echo ready; read end"});
  const std::vector<std::string> without{"setpriv", "--bounding-set", "-kill"};
  options.argv.insert(options.argv.begin(), without.begin(), without.end());
  Process run(options);
  ASSERT_EQ(run.read_line(patience()), "ready") << run.collected_stderr();
  server_->pause();
  EXPECT_TRUE(run.stderr_shows("runs as another user and cannot be ended", patience()))
      << run.collected_stderr();
  EXPECT_FALSE(run.wait(within(1s))) << "its command runs on";
  run.write("end\n");
  const auto status = run.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 76);
  EXPECT_EQ(run.collected_stderr().find("killed"), std::string::npos) << run.collected_stderr();
  server_->resume();
}

// As a set-user-ID program in a script, where /proc hides the processes of other users.
TEST_P(CliEnding, ADescendantThatProcHidesIsReported) {
  const Place hidden{"hidepid=2",
                     {"-m"},
                     "mount --make-private /proc && mount -t proc -o hidepid=2 proc /proc && "
                     "exec setpriv --bounding-set -sys_ptrace,-kill \"$@\""};
  const std::string script =
      "setpriv --reuid 65534 --clear-groups sh -c 'echo ready; exec sleep 8' & wait";
  auto options =
      dlock_on(url(), {"run", "job", "--kill-after", "200ms", "--json", "--", "sh", "-c", script});
  Process run(inside(hidden, options));
  ASSERT_EQ(run.read_line(patience()), "ready") << run.collected_stderr();
  server_->pause();
  const auto status = run.wait(within(20s));
  ASSERT_TRUE(status) << run.collected_stderr();
  EXPECT_EQ(status->shell_status(), 76);
  EXPECT_NE(run.collected_stderr().find("not_ended"), std::string::npos) << run.collected_stderr();
  server_->resume();
}

// The command ends by SIGTERM while dlock is stopped: SIGKILL is sent to a zombie.
TEST_P(CliEnding, ACommandThatEndedBySigtermIsNotCalledKilled) {
  Process run(dlock_on(url(), {"run", "job", "--kill-after", "200ms", "--", "sh", "-c",
                               "trap 'echo told; read go; exit 0' TERM; echo ready; "
                               "while :; do sleep 0.05; done"}));
  ASSERT_EQ(run.read_line(patience()), "ready") << run.collected_stderr();
  server_->pause();
  ASSERT_EQ(run.read_line(patience()), "told");
  ASSERT_TRUE(run.pause());
  run.write("go\n");
  EXPECT_FALSE(run.wait(within(1s)));
  run.resume();
  const auto status = run.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 76);
  EXPECT_EQ(run.collected_stderr().find("killed"), std::string::npos) << run.collected_stderr();
  server_->resume();
}

}  // namespace
}  // namespace dlock::cli_test

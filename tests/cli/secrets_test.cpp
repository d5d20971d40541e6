// SPDX-License-Identifier: Apache-2.0
//
// No secret comes out of the command: not on its outputs, whatever the verb and whatever went
// wrong, and not in `ps`.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "testkit/ports.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

constexpr const char* kSecret = "Tr0ub4dor&3";
/// As it stands in a URL; in base64; in hexadecimal.
const std::vector<std::string> kSpellings = {kSecret, "Tr0ub4dor%263", "VHIwdWI0ZG9yJj",
                                             "5472307562346"};

void expect_no_secret(const std::string& text, const std::string& where) {
  for (const auto& spelling : kSpellings) {
    EXPECT_EQ(text.find(spelling), std::string::npos) << where << ": " << text;
  }
}

void start_with_password(testkit::RedisServer& server, const std::string& password) {
  server.start();
  const auto said =
      testkit::ask(server.port(), "CONFIG SET requirepass " + password + "\r\n", "\n", patience());
  ASSERT_EQ(said, "+OK\r\n");
}

std::string command_line(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::vector<std::vector<std::string>> kVerbs = {
    {"run", "x", "--wait", "0", "--", "true"},
    {"hold", "x", "--wait", "0", "--for", "10ms"},
    {"status", "x"},
    {"status", "x", "--json"},
    {"list"},
    {"list", "--json"},
    {"break", "x", "--token", "1"},
    {"doctor"},
    {"doctor", "--json"},
};

/// Every verb, with the URL on the command line, in the environment and in a file.
void try_all(const std::string& url) {
  const testkit::TempDir folder("dlock-secrets");
  const auto file = (folder / "dlock.yaml").string();
  testkit::write_file(file, fmt::format("stores:\n  main:\n    url: \"{}\"\n", url));
  for (const auto& verb : kVerbs) {
    auto in_environment = dlock(verb);
    in_environment.env = {{"DLOCK_STORE", url}};
    std::erase(in_environment.unset_env, "DLOCK_STORE");
    auto in_file = verb;
    in_file.insert(in_file.begin(), {"--config", file});
    for (auto& options : {dlock_on(url, verb), in_environment, dlock(in_file)}) {
      const auto result = finish(options);
      expect_no_secret(result.out, verb[0] + " on stdout");
      expect_no_secret(result.err, verb[0] + " on stderr");
    }
  }
}

constexpr const char* kImpatient = "connect_timeout=300ms&release_timeout=300ms";

TEST(CliSecrets, OfAServerThatTakesThem) {
  testkit::RedisServer server;
  start_with_password(server, kSecret);
  const auto url =
      fmt::format("redis://:Tr0ub4dor%263@127.0.0.1:{}/0?{}", server.port(), kImpatient);
  EXPECT_EQ(finish(dlock_on(url, {"run", "x", "--", "true"})).status.shell_status(), 0);
  try_all(url);
}

TEST(CliSecrets, OfAServerThatRefusesThem) {
  testkit::RedisServer server;
  start_with_password(server, "another");
  try_all(fmt::format("redis://:Tr0ub4dor%263@127.0.0.1:{}/0?{}", server.port(), kImpatient));
}

TEST(CliSecrets, OfServersThatAreDown) {
  const testkit::Port port;
  for (const char* scheme : {"redis", "zookeeper", "memcached"}) {
    try_all(
        fmt::format("{}://app:Tr0ub4dor%263@127.0.0.1:{}?{}", scheme, port.number(), kImpatient));
  }
}

TEST(CliSecrets, OfUrlsThatAreWrong) {
  for (const char* url :
       {"redis://app:Tr0ub4dor%263@h:99999", "redsi://app:Tr0ub4dor%263@h",
        "redis://app:Tr0ub4dor&3", "redis:/app:Tr0ub4dor&3@h", "redis://app:a/Tr0ub4dor&3@h",
        "redis://app:a?Tr0ub4dor&3@h", "redis://app:a#Tr0ub4dor&3@h", "redis://Tr0ub4dor%263@h",
        "zk+tls://app:Tr0ub4dor&3@h", "redis://h?password=Tr0ub4dor%263"}) {
    const bool user_alone = std::string_view(url).find(':', 8) == std::string_view::npos;
    if (!user_alone) try_all(url);
  }
}

TEST(CliSecrets, AreGoneFromTheCommandLine) {
  testkit::RedisServer server;
  start_with_password(server, kSecret);
  const auto url = fmt::format("redis://:Tr0ub4dor%263@127.0.0.1:{}/0", server.port());
  for (const bool attached : {false, true}) {
    auto arguments = attached ? std::vector<std::string>{"--store=" + url}
                              : std::vector<std::string>{"--store", url};
    arguments.insert(arguments.end(), {"run", "x", "--", "sh", "-c", "echo $$; read line"});
    Process run(dlock(arguments));
    const auto child = run.read_line(patience());
    ASSERT_TRUE(child) << run.collected_stderr();
    expect_no_secret(command_line(run.pid()), "dlock's command line");
    expect_no_secret(command_line(std::stoi(*child)), "the child's command line");
    EXPECT_NE(command_line(run.pid()).find("127.0.0.1"), std::string::npos) << "the rest stays";
    EXPECT_NE(run.collected_stderr().find("warning: a password on the command line"),
              std::string::npos);
    run.close_stdin();
    EXPECT_TRUE(run.wait(patience()));
  }
}

}  // namespace
}  // namespace dlock::cli_test

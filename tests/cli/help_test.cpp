// SPDX-License-Identifier: Apache-2.0
//
// What the command says unasked, to whom, and what it keeps to itself.
#include <sys/stat.h>

#include <future>

#include "cli/open.hpp"
#include "testkit/ports.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

TEST(CliHelp, IsAVerbToo) {
  EXPECT_EQ(finish(dlock({"help", "run"})).out, finish(dlock({"run", "--help"})).out);
  EXPECT_EQ(finish(dlock({"help"})).out, finish(dlock({"--help"})).out);
  EXPECT_EQ(finish(dlock({"help", "migrate", "plan"})).out,
            finish(dlock({"migrate", "plan", "--help"})).out);
}

TEST(CliHelp, PromisesNoTableThatIsNone) {
  for (const char* verb : {"hold", "break", "run"}) {
    EXPECT_EQ(finish(dlock({verb, "--help"})).out.find("table"), std::string::npos) << verb;
  }
}

TEST(CliOutput, AFullDiskIsAnError) {
  const LocalStore store;
  const auto to_full = [&](const std::string& words) {
    return finish({.argv = {"sh", "-c",
                            std::string("exec ") + dlock_binary() + " --store " + store.url() +
                                " " + words + " >/dev/full"}});
  };
  for (const char* verb : {"status x", "list", "doctor --json", "--help", "hold x --for 10ms"}) {
    const auto result = to_full(verb);
    EXPECT_EQ(result.status.shell_status(), 74) << verb;
    EXPECT_EQ(result.err, "dlock: standard output cannot be written: No space left on device\n");
  }
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST(CliOutput, AStandardOutputThatWasClosedIsAnError) {
  const LocalStore store;
  for (const char* verb : {"status x", "list", "doctor", "--help", "hold x --for 10ms"}) {
    const auto result = finish({.argv = {"sh", "-c",
                                         std::string("exec ") + dlock_binary() + " --store " +
                                             store.url() + " " + verb + " >&-"}});
    EXPECT_EQ(result.status.shell_status(), 74) << verb;
    EXPECT_EQ(result.err, "dlock: standard output cannot be written: Bad file descriptor\n");
  }
  const auto run = finish({.argv = {"sh", "-c",
                                    std::string("exec ") + dlock_binary() + " --store " +
                                        store.url() + " run x -- true >&-"}});
  EXPECT_EQ(run.status.shell_status(), 0) << "it prints nothing: " << run.err;
}

TEST(CliOutput, APipeWithoutAReaderIsAnError) {
  const LocalStore store;
  // The pipe has no reader any more when printf fails.
  const std::string script =
      "trap '' PIPE; { while printf . 2>/dev/null; do :; done; \"$@\"; echo $? >&2; } | :";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"status", "x"}, {"list"}, {"doctor"}, {"--help"}, {"hold", "x", "--for", "1h"}}) {
    auto options = dlock_on(store.url(), words);
    options.argv.insert(options.argv.begin(), {"sh", "-c", script, "sh"});
    EXPECT_EQ(finish(options).err, "dlock: standard output cannot be written: Broken pipe\n74\n")
        << words.front();
  }
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST(CliOutput, AVerbThatHoldsNothingWaitsForASlowReader) {
  const LocalStore store;
  const FullPipe full;
  auto options = dlock_on(store.url(), {"status", "x"});
  options.log_file = full.path();
  Process status(options);
  EXPECT_FALSE(status.wait(within(300ms)));
  auto all = full.drain();
  const auto ended = status.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 0);
  all += full.drain();
  EXPECT_TRUE(all.ends_with("xx: free\n")) << all.substr(all.size() - 100);
}

TEST(CliRun, AScriptWithoutAFirstLineIsRunByTheShell) {
  const LocalStore store;
  const auto script = store.folder() / "plain";
  testkit::write_file(script, "echo \"$DLOCK_NAME\"; exit 3\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const auto result = finish(dlock_on(store.url(), {"run", "x", "--", script.string()}));
  EXPECT_EQ(result.out, "x\n");
  EXPECT_EQ(result.status.shell_status(), 3);
}

TEST(CliRun, IsShownAsItsCommandWithoutWhatMayBeSecret) {
  const LocalStore store;
  const auto app_under = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "x"});
    options.insert(options.end(), {"--", "env", "MYSQL_PWD=hunter2", dlock_binary(), "--store",
                                   store.url(), "status", "x", "--json"});
    const auto result = finish(dlock_on(store.url(), std::move(options)));
    EXPECT_EQ(result.out.find("hunter2"), std::string::npos) << result.out;
    const auto status = boost::json::parse(result.out).as_object();
    return text(status.at("owner").as_object(), "app");
  };
  EXPECT_EQ(app_under({}), "env");
  EXPECT_EQ(app_under({"--hide-command"}), "dlock");
  EXPECT_EQ(cli::visible_words({"./report.sh", "nightly", "--all", "x"}), "./report.sh nightly");
  EXPECT_EQ(cli::visible_words({"mysql", "-psecret", "db"}), "mysql");
  EXPECT_EQ(cli::visible_words({"curl", "http://u:secret@h/"}), "curl");
  EXPECT_EQ(cli::visible_words({"python3", "my-job.py"}), "python3 my-job.py");
  EXPECT_EQ(cli::visible_words({"a\nb"}), "a\\x0ab");
  const auto longest = cli::visible_words({std::string(62, 'x') + "\xC3\xA4\xC3\xA4"});
  EXPECT_LE(longest.size(), 64U);
  EXPECT_EQ(longest.substr(longest.size() - 4), "x...");
}

TEST(CliRun, TheNameThatIsConfiguredStays) {
  const LocalStore store;
  const auto url = store.url() + "?app=billing";
  const auto result =
      finish(dlock_on(url, {"run", "x", "--", dlock_binary(), "--store", url, "status", "x"}));
  EXPECT_NE(result.out.find("x: held by billing (pid "), std::string::npos) << result.out;
}

TEST(CliNested, ItsOwnLockIsRefusedAndNotWaitedFor) {
  const LocalStore store;
  const auto inner = [&](std::vector<std::string> words) {
    std::vector<std::string> all = {"run",          "x",       "--",       "env", "-u", "NOTHING",
                                    dlock_binary(), "--store", store.url()};
    all.insert(all.end(), words.begin(), words.end());
    auto options = dlock_on(store.url(), all);
    return finish(options);
  };
  const auto refused = inner({"run", "x", "--", "echo", "inside"});
  EXPECT_EQ(refused.status.shell_status(), 64);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("x: the dlock run around this command (pid "), std::string::npos);
  EXPECT_NE(refused.err.find("dlock run --nested"), std::string::npos) << refused.err;
  EXPECT_EQ(inner({"hold", "x"}).status.shell_status(), 64);
  const auto nested = inner({"run", "x", "--nested", "--", "sh", "-c", "echo inside; exit 7"});
  EXPECT_EQ(nested.out, "inside\n");
  EXPECT_EQ(nested.status.shell_status(), 7);
  // Another lock, and the one around both.
  EXPECT_EQ(inner({"run", "y", "--", "true"}).status.shell_status(), 0);
  const auto deep =
      inner({"run", "y", "--", dlock_binary(), "--store", store.url(), "run", "x", "--", "true"});
  EXPECT_EQ(deep.status.shell_status(), 64) << deep.err;
}

TEST(CliNested, TheSameNameOnAnotherStoreIsAnotherLock) {
  const LocalStore store;
  const LocalStore other;
  const auto result = finish(dlock_on(store.url(), {"run", "x", "--", dlock_binary(), "--store",
                                                    other.url(), "run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 0) << result.err;
}

TEST(CliNested, WhatWasLeftInTheEnvironmentIsNoLock) {
  const LocalStore store;
  const auto outer =
      finish(dlock_on(store.url(), {"run", "x", "--", "sh", "-c", "echo \"$DLOCK_HELD\""}));
  auto options = dlock_on(store.url(), {"run", "x", "--", "true"});
  options.env = {{"DLOCK_HELD", outer.out}};
  std::erase(options.unset_env, "DLOCK_HELD");
  EXPECT_EQ(finish(options).status.shell_status(), 0);
}

TEST(CliQuiet, AndAnAcceptedGuaranteeAreSilent) {
  testkit::RedisServer server;
  server.start();
  const auto says = [&](const std::string& options, std::vector<std::string> words) {
    words.insert(words.end(), {"run", "x", "--", "true"});
    const auto result = finish(dlock_on(server.url() + options, words));
    EXPECT_EQ(result.status.shell_status(), 0) << result.err;
    return result.err;
  };
  EXPECT_NE(says("", {}).find("dlock: warning: store 'default' promises best_effort only"),
            std::string::npos);
  EXPECT_EQ(says("", {"-q"}), "");
  EXPECT_EQ(says("", {"--quiet"}), "");
  EXPECT_EQ(says("?accept=best_effort", {}), "");
}

TEST(CliWaiting, SaysForWhomOnATerminalOnly) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  const auto on_terminal = [&](const std::string& options) {
    const auto command = std::string("exec ") + dlock_binary() + " --store " + store.url() + " " +
                         options + "run x --wait 2s -- true";
    return finish({.argv = {"script", "-qec", command, "/dev/null"}}).out;
  };
  const auto said = on_terminal("");
  EXPECT_NE(said.find("dlock: waiting for x, held by dlock (pid " + std::to_string(holder.pid())),
            std::string::npos)
      << said;
  EXPECT_EQ(on_terminal("-q ").find("waiting for"), std::string::npos);
  const auto elsewhere = finish(dlock_on(store.url(), {"run", "x", "--wait", "2s", "--", "true"}));
  EXPECT_EQ(elsewhere.err.find("waiting for"), std::string::npos) << elsewhere.err;
}

TEST(CliWaiting, SaysOnATerminalWhyTheStoreIsOutOfReach) {
  const testkit::Port nobody;
  const auto address = "127.0.0.1:" + std::to_string(nobody.number());
  const auto command = std::string("exec ") + dlock_binary() + " --store 'redis://" + address +
                       "?retry=forever&connect_timeout=100ms' run x --wait 4s -- true";
  const auto said = finish({.argv = {"script", "-qec", command, "/dev/null"}}).out;
  EXPECT_NE(said.find("dlock: waiting for x: the Redis server cannot be reached"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(address + ": Connection refused"), std::string::npos) << said;
}

TEST(CliWaiting, SaysSoAfterASecondOnEachStoreAndBeforeTheFinalError) {
  const testkit::Port nobody;
  const auto address = "127.0.0.1:" + std::to_string(nobody.number());
  const auto said_of = [](const std::string& url) {
    const auto command = "exec " + dlock_binary() + " --store " + url + " run x --wait 4s -- true";
    return finish({.argv = {"script", "-qec", command, "/dev/null"}}).out;
  };
  std::vector<std::future<std::string>> all;
  for (const auto* scheme : {"redis", "memcached", "zookeeper"}) {
    const auto url = std::string(scheme) + "://" + address;
    all.push_back(std::async(std::launch::async, said_of, url));
  }
  for (auto& one : all) {
    const auto said = one.get();
    const auto note = said.find("dlock: waiting for x: ");
    ASSERT_NE(note, std::string::npos) << said;
    EXPECT_NE(said.substr(note, said.find('\n', note) - note).find(address), std::string::npos)
        << said;
    EXPECT_GT(said.find("dlock: ", note + 1), note) << said;
  }
}

TEST(CliStatus, LeavesRoomBehindItsWords) {
  testkit::RedisServer server;
  server.start();
  Process holder(dlock_on(server.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  const auto people = finish(dlock_on(server.url(), {"status", "x"})).out;
  EXPECT_NE(people.find("lease left  "), std::string::npos) << people;
}

}  // namespace
}  // namespace dlock::cli_test

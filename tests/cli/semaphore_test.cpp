// SPDX-License-Identifier: Apache-2.0
//
// `--permits`, `--of` and `dlock semaphore`.
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

int run_status(const std::string& url, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  return finish(dlock_on(url, std::move(arguments))).status.shell_status();
}

TEST(CliSemaphore, SoManyRunAtOnceAndNoMore) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x", "--permits", "2", "--of", "3"}));
  const auto held = read_event(holder);
  EXPECT_EQ(text(held, "event"), "held");
  EXPECT_EQ(keys(held), "event name token store remaining_ms sequencer permits");
  EXPECT_EQ(held.at("permits").to_number<int>(), 2);
  EXPECT_TRUE(held.at("sequencer").is_null());
  EXPECT_EQ(run_status(store.url(), {"x", "--of", "3", "--wait", "0", "--", "true"}), 0);
  EXPECT_EQ(run_status(store.url(), {"x", "--permits", "2", "--wait", "0", "--", "true"}), 75);
  EXPECT_EQ(run_status(store.url(), {"x", "--wait", "0", "--", "true"}), 0)
      << "a lock is no permit";

  const auto shown = finish(dlock_on(store.url(), {"semaphore", "show", "x"}));
  EXPECT_NE(shown.out.find("x: 1 of 3 permits free"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("2 permits"), std::string::npos) << shown.out;
  const auto json =
      json::parse(finish(dlock_on(store.url(), {"semaphore", "show", "x", "--json"})).out);
  EXPECT_EQ(keys(json.as_object()), "name limit held free holders waiting notes");
  EXPECT_EQ(keys(json.at("holders").as_array().at(0).as_object()),
            "host pid pid_namespace app id permits token since_ms remaining_ms broken");
}

TEST(CliSemaphore, AStoppedWaiterThatKeepsFreePermitsFromOthersIsNamed) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x", "--permits", "2", "--of", "2"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  Process ahead(dlock_on(store.url(), {"run", "x", "--of", "2", "--", "true"}));
  const auto waits = [&] {
    const auto shown = finish(dlock_on(store.url(), {"semaphore", "show", "x", "--json"})).out;
    return !json::parse(shown).at("waiting").as_array().empty();
  };
  ASSERT_TRUE(testkit::eventually(patience(), waits));
  ASSERT_TRUE(ahead.pause());
  holder.close_stdin();
  EXPECT_EQ(holder.wait(patience())->shell_status(), 0) << holder.collected_stderr();
  const auto late =
      finish(dlock_on(store.url(), {"run", "x", "--of", "2", "--wait", "200ms", "--", "true"}));
  EXPECT_EQ(late.status.shell_status(), 75) << late.err;
  EXPECT_NE(late.err.find("2 of 2 permits are free, but true (pid " + std::to_string(ahead.pid())),
            std::string::npos)
      << late.err;
  EXPECT_EQ(late.err.find("too few"), std::string::npos) << late.err;
  ASSERT_TRUE(ahead.resume());
  EXPECT_EQ(ahead.wait(patience())->shell_status(), 0) << ahead.collected_stderr();
}

TEST(CliSemaphore, AnotherNumberIsRefusedUntilItIsSet) {
  const LocalStore store;
  EXPECT_EQ(run_status(store.url(), {"x", "--of", "3", "--", "true"}), 0);
  const auto refused = finish(dlock_on(store.url(), {"run", "x", "--of", "4", "--", "true"}));
  EXPECT_EQ(refused.status.shell_status(), 64);
  EXPECT_NE(refused.err.find("has 3 permits in the store, and 4 were said here"), std::string::npos)
      << refused.err;
  const auto set = finish(dlock_on(store.url(), {"semaphore", "set", "x", "4", "--json"}));
  EXPECT_EQ(set.out, "{\"event\":\"set\",\"name\":\"x\",\"limit\":4}\n");
  EXPECT_EQ(run_status(store.url(), {"x", "--of", "4", "--", "true"}), 0);
  EXPECT_EQ(run_status(store.url(), {"x", "--permits", "5", "--", "true"}), 64);
  EXPECT_EQ(run_status(store.url(), {"x", "--permits", "3", "--of", "2", "--", "true"}), 64);
  EXPECT_EQ(run_status(store.url(), {"x", "--of", "4", "--shared", "--", "true"}), 64);
  const auto nobody = finish(dlock_on(store.url(), {"run", "y", "--permits", "1", "--", "true"}));
  EXPECT_EQ(nobody.status.shell_status(), 64);
  EXPECT_NE(nobody.err.find("does not know how many permits"), std::string::npos) << nobody.err;
  EXPECT_EQ(nobody.err.find("nobody holds it"), std::string::npos) << nobody.err;
}

// Nobody listens there: what cannot be is refused before anybody is asked.
TEST(CliSemaphore, MemcachedRefusesAtOnceAndSaysWhy) {
  const auto result =
      finish(dlock_on("memcached://127.0.0.1:1", {"run", "x", "--of", "2", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 64) << result.err;
  EXPECT_NE(result.err.find("has no semaphores"), std::string::npos) << result.err;
}

TEST(CliSemaphore, APermitWithinALockOfTheSameNameIsNoNesting) {
  const LocalStore store;
  EXPECT_EQ(run_status(store.url(), {"x", "--", DLOCK_BINARY, "--store", store.url(), "run", "x",
                                     "--of", "1", "--", "true"}),
            0);
}

TEST(CliSemaphore, ListAndStatusShowIt) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "a/x", "--permits", "2", "--of", "3"}));
  const auto token = read_event(holder).at("token").as_int64();
  ASSERT_EQ(finish(dlock_on(store.url(), {"semaphore", "set", "b", "7"})).status.shell_status(), 0);
  Process lock(dlock_on(store.url(), {"hold", "a/y"}));
  read_event(lock);
  const auto shown = finish(dlock_on(store.url(), {"list"}));
  EXPECT_NE(shown.out.find("SEMAPHORE  PERMITS  HELD  FREE  HOLDERS  WAITING\n"), std::string::npos)
      << shown.out;
  EXPECT_NE(shown.out.find("a/x        3        2     1     1        0"), std::string::npos)
      << shown.out;
  const auto list = json::parse(finish(dlock_on(store.url(), {"list", "a", "--json"})).out);
  const auto& all = list.as_array();
  ASSERT_EQ(all.size(), 2U) << "below a";
  EXPECT_EQ(text(all.at(0).as_object(), "kind"), "lock");
  const auto& semaphore = all.at(1).as_object();
  EXPECT_EQ(keys(semaphore), "kind name limit permits_held permits_free holders waiting notes");
  EXPECT_EQ(text(semaphore, "kind"), "semaphore");
  EXPECT_EQ(semaphore.at("permits_held").to_number<int>(), 2);
  EXPECT_EQ(semaphore.at("holders").as_array().at(0).at("token").as_int64(), token);

  const auto status = finish(dlock_on(store.url(), {"status", "a/x"}));
  EXPECT_NE(status.out.find("a/x: free\nsemaphore a/x: 1 of 3 permits free\n"), std::string::npos)
      << status.out;
  const auto both = json::parse(finish(dlock_on(store.url(), {"status", "a/x", "--json"})).out);
  EXPECT_EQ(both.at("semaphore").at("held").to_number<int>(), 2);
}

TEST(CliSemaphore, BreakSaysWhoHasPermitsAndTheLocalStoreWhomToEnd) {
  const LocalStore store;
  const auto break_it = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"break", "x"});
    return finish(dlock_on(store.url(), std::move(more)));
  };
  EXPECT_EQ(break_it({"--semaphore", "--token", "1"}).status.shell_status(), 75);
  Process holder(dlock_on(store.url(), {"hold", "x", "--permits", "2", "--of", "3"}));
  const auto token = std::to_string(read_event(holder).at("token").as_int64());
  const auto json =
      json::parse(finish(dlock_on(store.url(), {"semaphore", "show", "x", "--json"})).out);
  const auto& shown = json.at("holders").as_array().at(0).as_object();

  const auto other = break_it({"--semaphore", "--token", "1"});
  EXPECT_EQ(other.status.shell_status(), 75);
  EXPECT_NE(other.err.find("token " + token), std::string::npos) << other.err;
  const auto nobody = break_it({"--semaphore", "--holder", "nobody"});
  EXPECT_EQ(nobody.status.shell_status(), 75);
  EXPECT_NE(nobody.err.find(text(shown, "id")), std::string::npos) << nobody.err;
  const auto lock = break_it({"--token", token});
  EXPECT_EQ(lock.status.shell_status(), 75);
  EXPECT_NE(lock.err.find("--semaphore"), std::string::npos) << lock.err;
  const auto refused = break_it({"--semaphore", "--holder", text(shown, "id")});
  EXPECT_NE(refused.status.shell_status(), 0);
  const auto pid = std::to_string(shown.at("pid").as_int64());
  EXPECT_NE(refused.err.find(pid), std::string::npos) << refused.err;

  for (const auto& wrong :
       std::vector<std::vector<std::string>>{{"--semaphore"},
                                             {"--semaphore", "--token", "1", "--holder", "x"},
                                             {"--semaphore", "--token", "1", "--ask"},
                                             {"--holder", "x"}}) {
    EXPECT_EQ(break_it(wrong).status.shell_status(), 64);
  }
}

}  // namespace
}  // namespace dlock::cli_test

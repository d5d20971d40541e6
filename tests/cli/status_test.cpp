// SPDX-License-Identifier: Apache-2.0
//
// `status`, `list`, `break`, `doctor`: their JSON is a contract, their tables are for people.
#include <unistd.h>

#include "testkit/ports.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

constexpr const char* kStatusKeys =
    "name held sealed token owner since_ms remaining_ms waiting notes mode readers broken";

TEST(CliStatus, OfAHeldLock) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "orders/42"}));
  const auto held = read_event(hold);
  const auto status = status_of(store.url(), "orders/42");
  EXPECT_EQ(keys(status), std::string(kStatusKeys) + " last_run semaphore");
  EXPECT_EQ(text(status, "name"), "orders/42");
  EXPECT_EQ(status.at("held"), json::value(true));
  EXPECT_EQ(status.at("token"), held.at("token"));
  EXPECT_TRUE(status.at("remaining_ms").is_null());
  ASSERT_TRUE(status.at("owner").is_object());
  const auto& owner = status.at("owner").as_object();
  EXPECT_EQ(keys(owner), "host pid pid_namespace app id");
  EXPECT_EQ(owner.at("pid"), json::value(hold.pid()));
  EXPECT_EQ(text(owner, "app"), "dlock");
  EXPECT_EQ(text(owner, "id").size(), 36U);

  const auto people = finish(dlock_on(store.url(), {"status", "orders/42"}));
  EXPECT_NE(
      people.out.find("orders/42: held by dlock (pid " + std::to_string(hold.pid()) + ") on "),
      std::string::npos)
      << people.out;
}

TEST(CliStatus, OfAFreeLock) {
  const LocalStore store;
  const auto status = status_of(store.url(), "x");
  EXPECT_EQ(keys(status), std::string(kStatusKeys) + " last_run semaphore");
  EXPECT_EQ(status.at("held"), json::value(false));
  EXPECT_TRUE(status.at("owner").is_null());
  EXPECT_EQ(finish(dlock_on(store.url(), {"status", "x"})).out, "x: free\n");
}

TEST(CliStatus, OfALockThatIsWaitedFor) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  Process first(dlock_on(store.url(), {"hold", "x"}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 1; }));
  Process second(dlock_on(store.url(), {"hold", "x"}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 2; }));
  const auto status = status_of(store.url(), "x");
  const auto& queue = status.at("waiting").as_array();
  EXPECT_EQ(queue[0].as_object().at("pid"), json::value(first.pid()));
  EXPECT_EQ(queue[1].as_object().at("pid"), json::value(second.pid()));
}

TEST(CliList, ShowsTheLocksBelowAPrefix) {
  const LocalStore store;
  Process a(dlock_on(store.url(), {"hold", "orders/1"}));
  Process b(dlock_on(store.url(), {"hold", "orders/2"}));
  Process c(dlock_on(store.url(), {"hold", "ordersX"}));
  for (auto* hold : {&a, &b, &c}) EXPECT_EQ(text(read_event(*hold), "event"), "held");

  const auto names = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "list");
    arguments.emplace_back("--json");
    const auto result = finish(dlock_on(store.url(), arguments));
    std::vector<std::string> found;
    const auto listed = json::parse(result.out);
    for (const auto& item : listed.as_array()) {
      EXPECT_EQ(keys(item.as_object()), std::string(kStatusKeys) + " kind");
      if (item.as_object().at("held").as_bool()) found.push_back(text(item.as_object(), "name"));
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_EQ(names({}), (std::vector<std::string>{"orders/1", "orders/2", "ordersX"}));
  EXPECT_EQ(names({"orders"}), (std::vector<std::string>{"orders/1", "orders/2"}));
  EXPECT_EQ(names({"orders/2"}), (std::vector<std::string>{"orders/2"}));

  EXPECT_EQ(names({"orders/*"}), (std::vector<std::string>{"orders/1", "orders/2"}));
  EXPECT_EQ(names({"*/1"}), (std::vector<std::string>{"orders/1"}));
  EXPECT_EQ(names({"orders/2/**"}), (std::vector<std::string>{"orders/2"}));
  EXPECT_EQ(names({"orders/2/*"}), (std::vector<std::string>{}));
  EXPECT_EQ(names({"orders*"}), (std::vector<std::string>{"ordersX"}));

  const auto table = finish(dlock_on(store.url(), {"list"})).out;
  EXPECT_EQ(table.substr(0, 4), "NAME") << table;
  EXPECT_NE(table.find("orders/2"), std::string::npos) << table;
}

TEST(CliList, RefusesAPrefixThatCannotBeAName) {
  const LocalStore store;
  for (const std::string prefix : {"/x", "x/", "x//y", "x/../y", "x/***"}) {
    const auto result = finish(dlock_on(store.url(), {"list", prefix}));
    EXPECT_EQ(result.status.shell_status(), 64) << prefix;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("dlock: " + prefix + ": ")) << result.err;
  }
}

TEST(CliList, NamesWhatItCannotReadAndListsTheRest) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  // A lock file is never read through a symbolic link.
  const auto unreadable = store.folder() / "locks" / "y.lock";
  std::filesystem::create_symlink("x.lock", unreadable);
  const auto result = finish(dlock_on(store.url(), {"list"}));
  EXPECT_EQ(result.status.shell_status(), 65);
  EXPECT_NE(result.out.find("\nx "), std::string::npos) << result.out;
  EXPECT_TRUE(result.err.starts_with("dlock: the list is incomplete: ")) << result.err;
  EXPECT_NE(result.err.find(unreadable.string()), std::string::npos) << result.err;
  EXPECT_EQ(finish(dlock_on(store.url(), {"list", "x"})).status.code, 0) << "not asked for";
}

TEST(CliList, FailsForAFileThatItMayNotRead) {
  namespace fs = std::filesystem;
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  const auto unreadable = store.folder() / "locks" / "y.lock";
  fs::copy_file(store.folder() / "locks" / "x.lock", unreadable);
  fs::permissions(unreadable, fs::perms::none);
  fs::permissions(store.folder().path(), fs::perms::all);
  fs::permissions(store.folder() / "locks", fs::perms::all);
  fs::permissions(store.folder() / "locks" / "x.lock", fs::perms(0666));
  auto options = dlock_on(store.url(), {"list"});
  const std::vector<std::string> as_another{"setpriv", "--reuid", "65534", "--clear-groups"};
  if (::geteuid() == 0)
    options.argv.insert(options.argv.begin(), as_another.begin(), as_another.end());
  const auto result = finish(options);
  EXPECT_EQ(result.status.shell_status(), 78) << result.err;
  EXPECT_NE(result.out.find("\nx "), std::string::npos) << result.out;
  EXPECT_NE(result.err.find(unreadable.string()), std::string::npos) << result.err;
}

TEST(CliList, AStoreOutOfReachHidesNoOther) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  const testkit::Port nobody;
  const auto file = (store.folder() / "dlock.yaml").string();
  testkit::write_file(
      file, "stores:\n  here: \"" + store.url() +
                "\"\n  gone: { url: \"redis://127.0.0.1:" + std::to_string(nobody.number()) +
                "\", connect_timeout: 300ms }\nlocks:\n  - { match: \"a/**\", "
                "store: gone }\n  - { match: \"**\", store: here }\n");
  const auto result = finish(dlock({"--config", file, "list"}));
  EXPECT_EQ(result.status.shell_status(), 69) << result.err;
  EXPECT_NE(result.out.find("\nx "), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("the list is incomplete: gone: "), std::string::npos) << result.err;
}

// The local store refuses: the way to free a lock there is to end its holder.
TEST(CliBreak, IsRefusedOnTheLocalStoreWithThePidToEnd) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  const auto held = read_event(hold);
  const auto token = std::to_string(held.at("token").to_number<std::uint64_t>());
  const auto result = finish(dlock_on(store.url(), {"break", "x", "--token", token}));
  EXPECT_EQ(result.status.shell_status(), 64) << result.err;
  EXPECT_NE(result.err.find(std::to_string(hold.pid())), std::string::npos) << result.err;
  EXPECT_TRUE(is_held(store.url(), "x"));
  EXPECT_EQ(finish(dlock_on(store.url(), {"break", "y", "--token", "1"})).status.code, 75);
}

TEST(CliDoctor, SaysWhatAStorePromises) {
  const LocalStore store;
  const auto result = finish(dlock_on(store.url(), {"doctor", "--json"}));
  EXPECT_EQ(result.status.shell_status(), 0) << result.err;
  const auto findings = json::parse(result.out);
  ASSERT_EQ(findings.as_array().size(), 1U);
  const auto& finding = findings.as_array()[0].as_object();
  EXPECT_EQ(keys(finding),
            "store backend reached connect_ms error message guarantee assumptions shortfalls fair "
            "token wake_up lease_scope lease_ms migration notes shared_mode "
            "can_tell_contention can_bound_queue can_head_start can_ask can_adopt semaphores "
            "self_test");
  EXPECT_EQ(text(finding, "backend"), "local");
  EXPECT_EQ(text(finding, "guarantee"), "exclusive");
  EXPECT_EQ(text(finding, "lease_scope"), "none");

  const auto people = finish(dlock_on(store.url(), {"doctor"})).out;
  EXPECT_NE(people.find("promises    exclusive, fair"), std::string::npos) << people;
}

TEST(CliDoctor, ReachesEveryStoreAndSaysWhichItCannot) {
  const LocalStore store;
  const testkit::Port nobody;
  const auto file = (store.folder() / "dlock.yaml").string();
  testkit::write_file(
      file, "stores:\n  here: \"" + store.url() +
                "\"\n  gone: { url: \"zookeeper://127.0.0.1:" + std::to_string(nobody.number()) +
                "/app\", connect_timeout: 1s }\nlocks:\n  - { match: \"a/**\", "
                "store: gone }\n  - { match: \"**\", store: here }\n");
  const auto result = finish(dlock({"--config", file, "doctor"}));
  EXPECT_EQ(result.status.shell_status(), 69) << result.err;
  EXPECT_NE(result.out.find("here (local): reached in "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("gone (zookeeper): not reached after "), std::string::npos)
      << result.out;
}

TEST(CliDoctor, RefusesWhatCannotGiveWhatIsRequired) {
  const auto result =
      finish(dlock({"--store", "memory://x?require=exclusive,token", "doctor", "--json"}));
  const auto findings = json::parse(result.out);
  const auto& finding = findings.as_array().at(0).as_object();
  const bool refused = !finding.at("error").is_null();
  EXPECT_EQ(result.status.shell_status(), refused ? 78 : 0) << result.out;
}

}  // namespace
}  // namespace dlock::cli_test

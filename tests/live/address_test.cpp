// SPDX-License-Identifier: Apache-2.0
//
// A host's name that points to another address after a while. The program keeps running.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Address : public testing::TestWithParam<std::string> {};

std::vector<std::string> stores_with_a_host() {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) {
    if (backend->name != "memory" && backend->name != "local") names.emplace_back(backend->name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Stores, Address, testing::ValuesIn(stores_with_a_host()),
                         [](const auto& store) { return store.param; });

TEST_P(Address, F71_ANameThatChangesIsLookedUpAgain) {
  const auto store = start_store(GetParam());
  const TempDir folder("dlock-hosts");
  const auto hosts = folder / "hosts";
  write_file(hosts, "127.0.0.99 store.test\n");  // nobody listens there
  auto url = store.url;
  url.replace(url.find("127.0.0.1"), 9, "store.test");
  ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--store",
                  url + (GetParam() == "zookeeper" ? "app" : "") + "?connect_timeout=60s", "hold",
                  "x"};
  options.env = {{"LD_PRELOAD", DLOCK_HOSTS_SHIM}, {"DLOCK_TEST_HOSTS", hosts.string()}};
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  Process process(std::move(options));
  EXPECT_FALSE(process.read_line(within(1s)));
  ASSERT_TRUE(process.running()) << process.collected_stderr();
  write_file(hosts, "127.0.0.1 store.test\n");
  EXPECT_THAT(process.read_line(patience()).value_or(""), HasSubstr("\"held\""))
      << process.collected_stderr();
  process.close_stdin();
  EXPECT_THAT(process.read_line(patience()).value_or(""), HasSubstr("released"));
}

}  // namespace
}  // namespace dlock::testkit

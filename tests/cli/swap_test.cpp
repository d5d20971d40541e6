// SPDX-License-Identifier: Apache-2.0
//
// The store is a line of configuration: running programs are moved from each store to the next by
// that line alone.
#include <algorithm>
#include <memory>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "tests/cli/cli_support.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

TEST(CliSwap, RunningProgramsAreMovedThroughAllStoresByOneLine) {
  constexpr int kPrograms = 2;
  constexpr int kThreads = 2;  // of each
  constexpr int kRounds = 25;
  const auto stores = testkit::start_every_store();
  ASSERT_FALSE(stores.empty());
  const testkit::TempDir folder("dlock-cli-test");
  const auto config = (folder / "dlock.yaml").string();
  const auto counter = (folder / "counter").string();
  std::vector<std::unique_ptr<Process>> programs;
  for (int i = 0; i < kPrograms; ++i) {
    testkit::ProcessOptions options;
    options.argv = {DLOCK_SWAP_PROGRAM, config, counter, std::to_string(kRounds)};
    programs.push_back(std::make_unique<Process>(options));
  }
  // The lock is held on every store, and freed only on the one that the programs are moved to: they
  // stand until then, and go on although the others are taken.
  std::vector<LockManager> managers;
  std::vector<LockHandle> held;
  managers.reserve(stores.size());
  held.reserve(stores.size());
  for (const auto& store : stores) {
    OpenOptions options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    managers.push_back(LockManager::open(store.url, std::move(options)));
    held.push_back(managers.back().lock("swap/counter")->acquire());
  }
  for (std::size_t i = 0; i < stores.size(); ++i) {
    const auto& store = stores[i];
    SCOPED_TRACE(store.backend);
    testkit::write_file(config, "stores:\n  main: \"" + store.url +
                                    "\"\nlocks:\n  - { match: \"**\", store: main }\n");
    testkit::write_file(counter, "0 0\n");
    for (const auto& program : programs) ASSERT_TRUE(program->write("go\n"));
    EXPECT_EQ(programs.front()->read_line(within(300ms)), std::nullopt);
    EXPECT_EQ(testkit::read_file(counter), "0 0\n");
    EXPECT_FALSE(held[i].release());
    for (const auto& program : programs) {
      ASSERT_EQ(program->read_line(patience()), "done") << program->collected_stderr();
    }
    const auto count = testkit::read_file(counter);
    EXPECT_EQ(count.substr(0, count.find(' ')), std::to_string(kPrograms * kThreads * kRounds));
    held[i] = managers[i].lock("swap/counter")->acquire();
  }
  for (const auto& program : programs) {
    program->close_stdin();
    const auto ended = program->wait(patience());
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->shell_status(), 0) << program->collected_stderr();
  }
}

TEST(CliSwap, TheProgramNamesNoStore) {
  std::string source = testkit::read_file(DLOCK_SWAP_SOURCE);
  std::transform(source.begin(), source.end(), source.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto* backend : OpenOptions::built_in().backends) {
    EXPECT_EQ(source.find(backend->name), std::string::npos) << backend->name;
    for (const auto scheme : backend->schemes) {
      EXPECT_EQ(source.find(std::string(scheme) + ":"), std::string::npos) << scheme;
    }
  }
}

}  // namespace
}  // namespace dlock::cli_test

// SPDX-License-Identifier: Apache-2.0
//
// The README promises what the stores declare, and docs/guarantees.md explains every assumption.
#include "tests/cli/guarantee_table.hpp"

#include <sstream>

#include "dlock/lock_manager.hpp"
#include "tests/cli/cli_support.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::cli_test {
namespace {

/// Without the rows of stores that this build has not.
std::string without(const std::string& table, const std::vector<GuaranteeRow>& rows) {
  std::istringstream lines(table);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    bool unknown = false;
    for (const auto& row : rows) {
      unknown = unknown || (row.line.empty() && line.starts_with("| " + row.title + " |"));
    }
    if (!unknown) kept += line + "\n";
  }
  return kept;
}

TEST(CliGuarantees, TheReadmesTableIsWhatTheStoresDeclare) {
  const auto rows = guarantee_rows();
  const auto readme = testkit::read_file(std::string(DLOCK_DOCS) + "/../README.md");
  EXPECT_EQ(without(table_of(readme), rows), guarantee_table(rows))
      << "run ./scripts/guarantees and look at what it changed";
}

TEST(CliGuarantees, EveryAssumptionIsExplained) {
  const auto page = testkit::read_file(std::string(DLOCK_DOCS) + "/guarantees.md");
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  for (const auto& store : testkit::start_every_store()) {
    auto locks = LockManager::open(store.url, options);
    const auto capabilities = locks.inspect().at(0).capabilities.value();
    for (const auto& assumption : capabilities.assumptions) {
      EXPECT_NE(page.find("| `" + assumption.name + "`"), std::string::npos)
          << store.backend << ": " << assumption.name;
    }
  }
}

}  // namespace
}  // namespace dlock::cli_test

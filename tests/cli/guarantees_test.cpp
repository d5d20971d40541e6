// SPDX-License-Identifier: Apache-2.0
//
// The README promises what the stores declare, and docs/guarantees.md explains every assumption.
#include "tests/cli/guarantee_table.hpp"

#include <map>
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

/// The rest of the row of a table that begins with the store's name.
std::string row_of(const std::string& page, std::string_view backend) {
  const std::map<std::string_view, std::string> titles{{"zookeeper", "ZooKeeper"},
                                                       {"redis", "Redis"},
                                                       {"memcached", "Memcached"},
                                                       {"local", "local"},
                                                       {"memory", "memory"}};
  const auto found = titles.find(backend);
  if (found == titles.end()) return {};
  const auto begin = "\n| " + found->second + " | ";
  const auto at = page.find(begin);
  return at == std::string::npos ? std::string() : page.substr(at + begin.size(), 400);
}

// Where a page says of each store whether it has a kind, it says what the store declares.
TEST(CliGuarantees, ThePagesOfKindsSayWhatTheStoresDeclare) {
  const std::string docs(DLOCK_DOCS);
  const auto adoption = testkit::read_file(docs + "/adoption.md");
  const auto giving_way = testkit::read_file(docs + "/giving_way.md");
  const auto leader = testkit::read_file(docs + "/leader.md");
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  auto all = testkit::start_every_store();
  all.push_back({"memory", "memory://x", {}});
  for (const auto& store : all) {
    auto locks = LockManager::open(store.url, options);
    const auto can = locks.inspect().at(0).capabilities.value();
    EXPECT_TRUE(row_of(adoption, store.backend).starts_with(can.can_adopt ? "yes" : "no"))
        << "adoption.md, " << store.backend;
    EXPECT_EQ(row_of(giving_way, store.backend).starts_with("refused"), !can.can_ask)
        << "giving_way.md, " << store.backend;
    const bool is_told = store.backend != "memcached";
    EXPECT_TRUE(row_of(leader, store.backend).starts_with(is_told ? "told" : "looks"))
        << "leader.md, " << store.backend;
    for (const auto* const kind : {"shared", "semaphore"}) {
      auto config = Config::from_url(store.url);
      config.stores.at(0).set({"require", kind, {}});
      const bool has = std::string_view(kind) == "shared" ? can.shared_mode : can.permits;
      auto strict = LockManager::from_config(std::move(config), options);
      const auto error = strict.inspect().at(0).error;
      EXPECT_EQ(error == errc::config_unsafe, !has) << store.backend << ' ' << kind;
    }
  }
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

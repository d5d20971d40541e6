// SPDX-License-Identifier: Apache-2.0
//
// The manuals say what the binary does: statuses, options and defaults come from its own tables.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "cli/open.hpp"
#include "core/config/options.hpp"
#include "core/config/retry.hpp"
#include "program/exit_codes.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

std::string manual(const char* name) {
  return testkit::read_file(std::string(DLOCK_DOCS) + "/" + name);
}

/// What is written about one backend: its section in the manual, and the page beside its code.
std::string manual_of(const BackendDescriptor& backend) {
  std::string text;
  const std::string page = manual("configuration.md");
  const std::regex heading(fmt::format("\n## {}\n", backend.name), std::regex::icase);
  std::smatch found;
  if (std::regex_search(page, found, heading)) {
    const auto start = static_cast<std::size_t>(found.position() + found.length());
    text = "\n" + page.substr(start, page.find("\n## ", start) - start) + "\n";
  }
  const auto file = fmt::format("{}/../backends/{}/README.md", DLOCK_DOCS, backend.name);
  if (std::filesystem::exists(file)) text += testkit::read_file(file);
  return text;
}

/// The table's row whose first cell has `key` in code style; empty if there is none.
std::string row_of(const std::string& page, const std::string& key) {
  const std::regex row(R"(\n(\|[^|\n]*`)" + key + R"(`[^\n]*)\n)");
  std::smatch found;
  return std::regex_search(page, found, row) ? found[1].str() : std::string();
}

void expect_documented(const std::string& page, const OptionSpec& spec) {
  const std::string row = row_of(page, std::string(spec.name));
  EXPECT_NE(row, "") << spec.name << " has no row in a table of options";
  EXPECT_NE(row.find(spec.default_value), std::string::npos) << spec.default_value << " in " << row;
  const std::string choice(spec.choices.substr(0, spec.choices.find('|')));
  EXPECT_NE(row.find(choice), std::string::npos) << choice << " in " << row;
}

TEST(CliDocs, EveryExitStatusIsExplainedAsTheBinaryDoes) {
  std::string page = manual("cli.md");
  page.erase(std::remove(page.begin(), page.end(), '`'), page.end());
  for (const auto& [code, meaning] : program::kExitMeanings) {
    std::string text(meaning);
    text.erase(std::remove(text.begin(), text.end(), '`'), text.end());
    const std::string row = code == program::Exit::signal_base
                                ? fmt::format("| 128 + N | {} |", text.substr(5))
                                : fmt::format("| {} | {} |", program::status(code), text);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(CliDocs, EveryOptionOfTheCommandIsExplained) {
  const std::string page = manual("cli.md");
  const std::regex option("--[a-z][a-z-]*");
  for (const char* verb : {"run", "hold", "status", "list", "break", "doctor"}) {
    const std::string help = finish(dlock({verb, "--help"})).out;
    EXPECT_NE(page.find(fmt::format("| `{}` |", verb)), std::string::npos) << verb;
    for (auto it = std::sregex_iterator(help.begin(), help.end(), option);
         it != std::sregex_iterator(); ++it) {
      EXPECT_NE(page.find(it->str()), std::string::npos) << verb << " " << it->str();
    }
  }
}

TEST(CliDocs, EveryOptionOfAStoreIsExplainedWithItsDefault) {
  const std::string page = manual("configuration.md");
  for (const auto& spec : core::core_options()) expect_documented(page, spec);
  for (const auto* backend : cli::open_options().backends) {
    const std::string own = manual_of(*backend);
    EXPECT_NE(own, "") << backend->name << " is described nowhere";
    for (const auto& spec : backend->options) expect_documented(own, spec);
    for (const auto scheme : backend->schemes) {
      const bool named = row_of(page, std::string(scheme)) != "" ||
                         own.find(fmt::format("{}://", scheme)) != std::string::npos;
      EXPECT_TRUE(named) << scheme;
    }
  }
}

TEST(CliDocs, EveryRetryPolicyAndParameterIsExplained) {
  const std::string page = manual("configuration.md");
  for (const char* name :
       {"forever", "n-times", "one-time", "until-elapsed", "exponential", "bounded-exponential"}) {
    EXPECT_TRUE(core::retry_kind(name));
    EXPECT_NE(row_of(page, name), "") << name;
  }
  for (const auto key : core::retry_keys()) {
    EXPECT_NE(page.find(key == "policy" ? "policy:" : fmt::format("`{}`", key)), std::string::npos)
        << key;
  }
}

/// `Suite.Test` of every test in the sources that a CMakeLists.txt names.
std::set<std::string> tests_of_the_tree() {
  std::string lists;
  std::vector<std::filesystem::path> sources;
  const std::string folder = std::string(DLOCK_DOCS) + "/../tests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "CMakeLists.txt") lists += testkit::read_file(entry.path());
    if (entry.path().string().ends_with("_test.cpp")) sources.push_back(entry.path());
  }
  std::set<std::string> tests;
  const std::regex test(R"(\nTEST(?:_F|_P)?\((\w+),\s*(\w+)\))");
  for (const auto& source : sources) {
    if (lists.find(source.filename().string()) == std::string::npos) continue;
    const std::string text = testkit::read_file(source);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), test);
         it != std::sregex_iterator(); ++it) {
      tests.insert((*it)[1].str() + "." + (*it)[2].str());
    }
  }
  return tests;
}

TEST(CliDocs, EveryFailureNamesItsTestsAndNoneIsMissing) {
  const std::string page = manual("failures.md");
  const auto tests = tests_of_the_tree();
  std::set<std::string> named;
  const std::regex test(R"(`(\w+\.\w+)`)");
  std::istringstream lines(page);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex(R"(^\| [FGP]\d\d \|)"))) continue;
    ++rows;
    const auto row = line.substr(2, 3);
    const auto before = named.size();
    for (auto it = std::sregex_iterator(line.begin(), line.end(), test);
         it != std::sregex_iterator(); ++it) {
      EXPECT_TRUE(tests.count((*it)[1])) << row << " names a test that is not: " << (*it)[1];
      named.insert((*it)[1]);
    }
    EXPECT_TRUE(named.size() > before || line.find(row + "_") != std::string::npos)
        << row << " has no test";
    // Several rows may share a test: F28_F29_...
    const std::regex of_this_row(R"(\.([FGP]\d\d_)*)" + row + "_");
    for (const auto& one : tests) {
      if (!std::regex_search(one, of_this_row)) continue;
      EXPECT_NE(line.find("`" + one + "`"), std::string::npos) << one << " is not in row " << row;
    }
    const bool judged = std::regex_search(
        line, std::regex(R"(\| (passes|simulated only: |no such mode( yet)?: )[^|]* \|$)"));
    EXPECT_TRUE(judged) << row << " does not say what came of it";
  }
  EXPECT_GE(rows, 60U);
  const std::regex of_some_row(R"(\.[FGP]\d\d_)");
  for (const auto& one : tests) {
    if (!std::regex_search(one, of_some_row)) continue;
    EXPECT_TRUE(named.count(one)) << one << " is in no row";
  }
}

// The examples of the manual are read as they stand there.
TEST(CliDocs, TheExamplesAreValid) {
  const std::string page = manual("configuration.md");
  const std::string fence = "```yaml\n";
  std::size_t read = 0;
  for (auto at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    const std::string yaml = page.substr(at, page.find("```", at) - at);
    if (yaml.substr(0, 2) == "  ") continue;  // a fragment
    const auto config = Config::from_yaml(yaml, "configuration.md");
    const auto backends = cli::open_options().backends;
    for (const auto& store : config.stores) EXPECT_NO_THROW(core::resolve_store(store, backends));
    ++read;
  }
  EXPECT_GE(read, 2U);
}

}  // namespace
}  // namespace dlock::cli_test

// SPDX-License-Identifier: Apache-2.0
//
// What is not there, and what leaves nothing to measure: a status of its own, before anything is
// started; and what there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "compare/suite/samples.hpp"
#include "compare/suite/scenario.hpp"
#include "program/exit_codes.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

testkit::Finished run_compare(std::vector<std::string> words, const testkit::TempDir& folder) {
  words.insert(words.begin(), {DLOCK_COMMAND, "compare"});
  return testkit::run({.argv = std::move(words), .working_directory = folder.path()}, {},
                      testkit::within(std::chrono::seconds(60)));
}

struct Wrong {
  const char* name;
  std::vector<std::string> words;
  std::vector<const char*> says;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class CompareNames : public testing::TestWithParam<Wrong> {};

TEST_P(CompareNames, HaveAStatusOfTheirOwn) {
  testkit::TempDir folder;
  testkit::write_file(folder / "list.json", "[1]");
  testkit::write_file(folder / "part.json", R"({"schema": 1})");
  const auto run = run_compare(GetParam().words, folder);
  EXPECT_EQ(run.status.shell_status(), program::status(program::Exit::no_input)) << run.err;
  for (const auto* text : GetParam().says) {
    EXPECT_NE(run.err.find(text), std::string::npos) << text << " in " << run.err;
  }
  EXPECT_EQ(run.out, "");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".json") << "nothing may stay: " << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(
    , CompareNames,
    testing::Values(
        Wrong{"scenario",
              {"--scenarios", "speed.uncontened"},
              {"no scenario 'speed.uncontened'", "did you mean 'speed.uncontended'?",
               "safety.holder_killed", "--list"}},
        Wrong{"beginning",
              {"--scenarios", "speed,saftey"},
              {"no scenario 'saftey'", "did you mean 'safety'?"}},
        Wrong{"store",
              {"--stores", "local,rediss"},
              {"no store 'rediss'", "did you mean 'redis'?", "redis-sentinel"}},
        Wrong{"client", {"--peers", "kazo"}, {"no client 'kazo'", "did you mean 'kazoo'?"}},
        Wrong{"nothing",
              {"--stores", "local", "--scenarios", "safety.failover"},
              {"nothing to measure", "safety.failover", "local"}},
        Wrong{"file", {"report", "none/raw.json"}, {"no file 'none/raw.json'"}},
        Wrong{"other_file", {"report", "list.json"}, {"'list.json' is no raw.json"}},
        Wrong{"damaged_file", {"report", "part.json"}, {"'part.json' is damaged"}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(CompareNothing, WhatIsMeasuredNowhereIsNothing) {
  testkit::TempDir folder;
  // Files have no wire on which something could be counted.
  const auto run =
      run_compare({"--quick", "--stores", "local", "--scenarios", "speed.cost"}, folder);
  EXPECT_EQ(run.status.shell_status(), program::status(program::Exit::no_input)) << run.err;
  EXPECT_NE(run.err.find("nothing was measured"), std::string::npos) << run.err;
}

TEST(CompareList, HasALineForEachScenario) {
  std::istringstream lines(scenario_list());
  std::string line;
  std::size_t found = 0;
  Options quick;
  quick.depth = Depth::quick;
  const auto left = left_out(quick);
  for (const auto* file : {"speed", "safety", "pitfalls"}) {
    for (const auto& entry : scenarios(file)) {
      const std::string id(entry.at("id").as_string());
      lines.clear();
      lines.seekg(0);
      bool has_line = false;
      while (std::getline(lines, line)) {
        if (!line.starts_with(id + " ")) continue;
        has_line = true;
        EXPECT_NE(line.find(entry.at("title").as_string().c_str()), std::string::npos) << line;
        const bool is_left = std::find(left.begin(), left.end(), id) != left.end();
        EXPECT_EQ(line.at(28) == '-', is_left) << line;
      }
      EXPECT_TRUE(has_line) << id;
      ++found;
    }
  }
  EXPECT_GT(found, 25U);
  EXPECT_GT(left.size(), 10U);
}

TEST(CompareList, TheCommandPrintsIt) {
  testkit::TempDir folder;
  const auto run = run_compare({"--list"}, folder);
  EXPECT_TRUE(run.status.success()) << run.err;
  EXPECT_EQ(run.out, scenario_list() + "\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CompareList, APipeWithoutAReaderIsAnError) {
  // The pipe has no reader any more when printf fails.
  const std::string script =
      "trap '' PIPE; { while printf . 2>/dev/null; do :; done; \"$@\"; echo $? >&2; } | :";
  const auto run =
      testkit::run({.argv = {"sh", "-c", script, "sh", DLOCK_COMMAND, "compare", "--list"}});
  EXPECT_EQ(run.err, "dlock: standard output cannot be written: Broken pipe\n74\n");
}

TEST(CompareUsage, ComplaintsAndHelpNameTheVerb) {
  testkit::TempDir folder;
  const auto complaint = [&](const std::vector<std::string>& words) {
    const auto run = run_compare(words, folder);
    EXPECT_EQ(run.status.shell_status(), 64);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_EQ(
      complaint({"--quik"}),
      "dlock: '--quik' is not an option of dlock compare; did you mean '--quick'? (try 'dlock "
      "compare --help')\n");
  EXPECT_EQ(complaint({"reprot"}),
            "dlock: 'reprot' is not a verb of compare; did you mean 'report'? (try 'dlock compare "
            "--help')\n");
  EXPECT_EQ(complaint({"report", "a", "b", "c"}),
            "dlock: 'c' is one word too many (try 'dlock compare report --help')\n");
  EXPECT_EQ(complaint({"--quick", "--full"}),
            "dlock: --quick excludes --full (try 'dlock compare --help')\n");
  const auto help = run_compare({"report", "--help"}, folder);
  EXPECT_EQ(help.status.shell_status(), 0) << help.err;
  EXPECT_NE(help.out.find("Usage: dlock compare report [OPTIONS] RAW [SECOND]"), std::string::npos)
      << help.out;
}

// What would not be looked at is no argument.
TEST(CompareList, ChoosesNothing) {
  testkit::TempDir folder;
  for (const std::string choice : {"--stores", "--scenarios", "--peers"}) {
    const auto run = run_compare({"--list", choice, "nonsense"}, folder);
    EXPECT_EQ(run.status.shell_status(), 64) << choice;
    EXPECT_NE(run.err.find("--list excludes " + choice), std::string::npos) << run.err;
  }
}

TEST(CompareQuickly, TakesFewerScenariosAndNotFewerSamples) {
  const auto quick = samples_of(Depth::quick), standard = samples_of(Depth::standard);
  EXPECT_GE(quick.repeats * quick.slices, 30);
  EXPECT_GE(quick.repeats * quick.slices, standard.repeats * standard.slices);
  EXPECT_GE(quick.tries, standard.tries);
}

TEST(CompareQuickly, WhatIsNamedIsTakenAllTheSame) {
  Options options;
  options.depth = Depth::quick;
  const boost::json::object pitfall{{"id", "pitfalls.herd"}};
  EXPECT_FALSE(is_wanted(options, pitfall));
  options.scenarios = {"pitfalls"};
  EXPECT_TRUE(is_wanted(options, pitfall));
  EXPECT_TRUE(left_out(options).empty());
  EXPECT_TRUE(left_out({}).empty());
}

}  // namespace
}  // namespace dlock::compare

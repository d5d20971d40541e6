// SPDX-License-Identifier: Apache-2.0
//
// The house stands as docs/architecture.md draws it: arrows point down, rooms are not crowded, and
// what the page names is there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <regex>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/house/arrows.hpp"

namespace dlock::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::filesystem::path kRoot = DLOCK_SOURCE_DIR;

Plan plan() { return read_plan(kRoot / "tests/unit/house/arrows.txt"); }

TEST(House, EveryIncludeFollowsAnArrow) {
  EXPECT_THAT(follow_includes(kRoot, plan()).wrong, IsEmpty());
}

TEST(House, EveryRoomIsInhabitedAndEveryArrowUsed) {
  const auto expected = plan();
  const auto found = follow_includes(kRoot, expected);
  EXPECT_EQ(found.used, expected.arrows);
  EXPECT_EQ(found.inhabited, expected.rooms);
}

TEST(House, AWrongIncludeIsFound) {
  const testkit::TempDir tree("dlock-house");
  const auto put = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((tree / file).parent_path());
    testkit::write_file(tree / file, text);
  };
  put("core/loop/env.hpp", "");
  put("core/store/store.hpp", "#include \"core/loop/env.hpp\"\n");
  put("include/dlock/error.hpp", "");
  put("tests/support/virtual_env.hpp", "");
  put("backends/redis/rules/names.hpp", "#include \"dlock/error.hpp\"\n");
  put("backends/redis/wire/link.hpp", "#include \"backends/redis/rules/names.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong, IsEmpty());

  put("core/loop/up.cpp", "#include <map>\n#include \"core/store/store.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong,
              ElementsAre("core/loop/up.cpp:2 includes core/store/store.hpp: core/loop may not "
                          "include core/store"));
  put("core/loop/up.cpp", "");
  put("backends/local/wire/other.cpp", "  #  include \"backends/redis/rules/names.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong,
              ElementsAre(HasSubstr("backends/*/wire may not include backends/*/rules")));
  put("backends/local/wire/other.cpp", "#include \"tests/support/virtual_env.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong,
              ElementsAre(HasSubstr("what is in no room")));
  put("backends/local/wire/other.cpp", "");
  put("backends/local/wire/near.hpp", "");
  put("migration/plan.hpp", "");
  put("migration/admin.hpp", "#include \"migration/plan.hpp\"\n");
  put("cli/output/text.cpp", "#include \"migration/admin.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong, IsEmpty());
  put("cli/output/text.cpp", "#include \"migration/plan.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong,
              ElementsAre(HasSubstr("cli/output may not include migration")));
  put("cli/output/text.cpp", "");
  put("include/dlock/public.hpp", "#include \"../../backends/local/wire/near.hpp\"\n");
  EXPECT_THAT(follow_includes(tree.path(), plan()).wrong,
              ElementsAre(HasSubstr("include/dlock may not include")));
}

TEST(House, NoFolderIsCrowded) {
  // More than these many things are not seen at a glance. Those that are named are to be divided.
  constexpr std::size_t kMost = 16;
  const std::map<std::string, std::size_t> crowded = {{"compare/drivers", 17},
                                                      {"compare/suite", 19},
                                                      {"core/config", 18},
                                                      {"core/manager", 19},
                                                      {"include/dlock", 30}};
  for (const auto& [folder, files] : units(kRoot, plan())) {
    const auto known = crowded.find(folder);
    EXPECT_LE(files.size(), known == crowded.end() ? kMost : known->second) << folder;
    if (known != crowded.end()) {
      EXPECT_GT(files.size(), kMost) << folder << " is not crowded any more";
    }
  }
}

TEST(House, EveryFileThatThePageNamesIsThere) {
  const auto page = testkit::read_file(kRoot / "docs/architecture.md");
  const std::regex name(
      "`((?:core|migration|backends|program|cli|compare|testkit|tests|include|docs|examples|"
      "scripts)/"
      "[A-Za-z0-9_./*-]*)`");
  std::size_t named = 0;
  for (std::sregex_iterator one(page.begin(), page.end(), name), end; one != end; ++one) {
    ++named;
    auto path = (*one)[1].str();
    if (path.size() > 2 && path.substr(path.size() - 2) == ".*") {
      path.resize(path.size() - 2);
      EXPECT_TRUE(std::filesystem::exists(kRoot / (path + ".hpp"))) << (*one)[1];
    } else if (path.find('*') == std::string::npos) {
      EXPECT_TRUE(std::filesystem::exists(kRoot / path)) << path;
    }
  }
  EXPECT_GT(named, 30U);
}

}  // namespace
}  // namespace dlock::house

// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kOurs = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000001";

struct Case {
  std::string name;
  std::string path;
};

class Names : public testing::TestWithParam<Case> {};

TEST_P(Names, MapBothWays) {
  const NameMap names({}, "/app");
  EXPECT_EQ(names.path(GetParam().name), GetParam().path);
  EXPECT_EQ(names.name(GetParam().path), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Names,
    testing::Values(Case{"a", "/app/a"}, Case{"orders/42", "/app/orders/42"},
                    Case{"a/1700000000", "/app/a/1700000000"}, Case{"two words", "/app/two words"},
                    Case{"100%", "/app/100%25"}, Case{"%41", "/app/%2541"},
                    Case{"zookeeper", "/app/zookeeper"}, Case{"caf\xC3\xA9", "/app/caf\xC3\xA9"},
                    Case{"\xC2\x85x", "/app/%C2%85x"},              // a C1 control character
                    Case{"\xEE\x80\x80", "/app/%EE%80%80"},         // private use
                    Case{"\xEF\xBF\xBE", "/app/%EF%BF%BE"},         // U+FFFE
                    Case{"\xEF\xBF\xAD", "/app/\xEF\xBF\xAD"},      // U+FFED is fine
                    Case{"\xF0\x9F\x94\x92", "/app/%F0%9F%94%92"},  // beyond the basic plane
                    Case{std::string("a/") + kOurs,
                         "/app/a/_c_01234567-89ab-cdef-0123-456789abcdef-lock-000000000%31"},
                    Case{"lock-0000000006/b", "/app/lock-000000000%36/b"},
                    Case{"01234567-89ab-cdef-0123-456789abcdef-lock--0000000000",
                         "/app/01234567-89ab-cdef-0123-456789abcdef-lock--000000000%30"}));

TEST(NameMap, NoNameMapsToAContendersNode) {
  const NameMap names({}, "/app");
  const auto path = names.path(std::string("a/") + kOurs);
  EXPECT_FALSE(parse_contender(path.substr(path.rfind('/') + 1)).has_value());
}

TEST(NameMap, TheServersOwnTreeIsNotALock) {
  const NameMap names({}, "");
  EXPECT_EQ(names.path("zookeeper"), "/zookeepe%72");
  EXPECT_EQ(names.path("zookeeper/quota"), "/zookeepe%72/quota");
  EXPECT_EQ(names.path("a/zookeeper"), "/a/zookeeper");
  EXPECT_EQ(names.name("/zookeepe%72"), "zookeeper");
  EXPECT_FALSE(names.name("/zookeeper").has_value());
}

TEST(NameMap, ForeignPathsAreNoNames) {
  const NameMap names({}, "/app");
  for (const char* path :
       {"/app", "/app/", "/", "", "/apple/x", "/other/x", "/app/%41", "/app/x%zz", "/app/a//b"}) {
    EXPECT_FALSE(names.name(path).has_value()) << path;
  }
}

TEST(NameMap, RootAndNodes) {
  const NameMap deep({}, "/app/locks/");
  EXPECT_EQ(deep.root(), "/app/locks");
  EXPECT_THAT(deep.root_nodes(), ElementsAre("/app", "/app/locks"));
  EXPECT_THAT(deep.nodes("a/b"), ElementsAre("/app/locks/a", "/app/locks/a/b"));

  const NameMap top({}, "/");
  EXPECT_EQ(top.root(), "/");
  EXPECT_THAT(top.root_nodes(), IsEmpty());
  EXPECT_THAT(top.nodes("a/b"), ElementsAre("/a", "/a/b"));

  const NameMap below("/team", "/app");
  EXPECT_EQ(below.root(), "/team/app");
  EXPECT_THAT(below.root_nodes(), ElementsAre("/team/app"));
  EXPECT_EQ(below.path("x"), "/team/app/x");

  const NameMap chroot_alone("/team", "");
  EXPECT_EQ(chroot_alone.root(), "/team");
  EXPECT_THAT(chroot_alone.root_nodes(), IsEmpty());
}

TEST(NameMap, NodesOfOursAreNoLocks) {
  for (const std::string root : {"/", "/app"}) {
    const NameMap names({}, root);
    const auto base = root == "/" ? std::string() : root;
    EXPECT_EQ(names.offset(), base + "/%offset");
    EXPECT_EQ(names.note("orders/42%"), base + "/%notes/orders%2F42%25");
    for (const auto& path : {names.offset(), names.notes(), names.note("a"), names.note("a/b")}) {
      EXPECT_FALSE(names.name(path)) << path;
      EXPECT_EQ(path_error(path), "");
    }
    EXPECT_NE(names.path("%offset"), names.offset());
    EXPECT_NE(names.path("%notes/a"), names.note("a"));
  }
}

TEST(NameMap, IsInjective) {
  const NameMap names({}, "");
  std::set<std::string> paths;
  const std::vector<std::string> some = {
      "a",
      "a/b",
      "a%2Fb",
      "a%2fb",
      "%61",
      "%",
      "%25",
      "%2525",
      "zookeeper",
      "zookeepe%72",
      kOurs,
      "_c_01234567-89ab-cdef-0123-456789abcdef-lock-000000000%31",
      "lock-0000000001",
      "lock-000000000%31",
      "\xF0\x9F\x94\x92",
      "%F0%9F%94%92"};
  for (const auto& name : some) EXPECT_TRUE(paths.insert(names.path(name)).second) << name;
}

TEST(PathError, SaysWhatAServerWouldRefuse) {
  for (const char* good : {"", "/", "/app", "/app/locks/", "/caf\xC3\xA9", "/zookeepers"}) {
    EXPECT_EQ(path_error(good), "") << good;
  }
  for (const char* bad : {"app", "//", "/a//b", "/a/./b", "/../b", "/a\nb", "/a\x1f", "/zookeeper",
                          "/zookeeper/x", "/\xF0\x9F\x94\x92"}) {
    if (std::string_view(bad) == "//") continue;  // slashes at the end are taken off
    EXPECT_NE(path_error(bad), "") << bad;
  }
}

}  // namespace
}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
#include "core/routes/route_uses.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kStart = std::chrono::hours(24 * 20'000);

/// Stores a, b and c; the routes are pairs of pattern and store.
Config config_of(const std::vector<std::pair<std::string, std::string>>& routes) {
  Config config;
  for (const auto* name : {"a", "b", "c"}) {
    StoreConfig store;
    store.name = name;
    store.url = fmt::format("redis://{}.example", name);
    config.stores.push_back(std::move(store));
  }
  for (const auto& [match, store] : routes) {
    RouteConfig route;
    route.match = match;
    route.store = store;
    config.locks.push_back(std::move(route));
  }
  return config;
}

/// As a manager with `config` notes its route `index`.
RouteUse use_of(const Config& config, std::size_t index, milliseconds when = kStart) {
  RouteUse use;
  use.configuration = config_digest(config);
  use.since = when;
  use.last = when;
  use.who = "billing (pid 4711) on web 1";
  use.match = config.locks.at(index).match;
  for (std::size_t i = 0; i < index; ++i) use.before.push_back(config.locks[i].match);
  return use;
}

std::string note_of(const Config& config, std::size_t index) {
  return with_route_use({}, use_of(config, index)).value();
}

TEST(RouteUses, AnEditedRouteIsAConflictInTheStoreThatItLeft) {
  const auto before = config_of({{"x/**", "c"}, {"**", "a"}});
  const auto after = config_of({{"x/**", "c"}, {"**", "b"}});
  const auto note = note_of(before, 1);
  const auto conflicts = route_conflicts(after, "a", note, kStart + 3h);
  ASSERT_EQ(conflicts.size(), 1U);
  for (const auto* part : {"store 'a'", "names of '**'", "3h ago", "billing (pid 4711) on web 1",
                           "routes '**' to 'b'", "docs/migration.md"}) {
    EXPECT_NE(conflicts[0].find(part), std::string::npos) << conflicts[0];
  }
  EXPECT_TRUE(route_conflicts(before, "a", note, kStart).empty()) << "the same configuration";
}

TEST(RouteUses, OnlyNamesThatBothConfigurationsRouteDifferentlyAreAConflict) {
  using Table = std::vector<std::pair<std::string, std::string>>;
  const struct {
    Table noted;  ///< its last route leads to a
    Table own;
    std::size_t conflicts;
  } table[] = {
      {{{"**", "a"}}, {{"billing/**", "b"}, {"**", "a"}}, 1},
      {{{"billing/**", "b"}, {"**", "a"}}, {{"billing/**", "b"}, {"x", "a"}, {"**", "a"}}, 0},
      {{{"billing/**", "a"}}, {{"billing/**", "a"}, {"**", "b"}}, 0},
      {{{"billing/**", "a"}}, {{"shop/**", "b"}, {"**", "a"}}, 0},
      {{{"billing/**", "a"}}, {{"billing/eu/**", "b"}, {"**", "a"}}, 1},
      {{{"billing/**", "a"}}, {{"shop/**", "b"}}, 0},
  };
  for (const auto& row : table) {
    const auto noted = config_of(row.noted);
    const auto note = note_of(noted, row.noted.size() - 1);
    EXPECT_EQ(route_conflicts(config_of(row.own), "a", note, kStart).size(), row.conflicts) << note;
  }
}

TEST(RouteUses, ARouteToTheSamePlaceUnderAnotherNameCausesNoWarning) {
  auto renamed = config_of({{"**", "b"}});
  renamed.stores[1].url = renamed.stores[0].url;
  EXPECT_TRUE(
      route_conflicts(renamed, "a", note_of(config_of({{"x", "c"}, {"**", "a"}}), 1), kStart)
          .empty());
}

TEST(RouteUses, ARouteThatMovesItsLocksCausesNoWarning) {
  auto moving = config_of({{"**", "a"}});
  auto& migrate = moving.locks[0].migrate.emplace();
  migrate.from = "a";
  migrate.to = "b";
  migrate.plan = "plan";
  const auto note = note_of(config_of({{"**", "a"}}), 0);
  EXPECT_TRUE(route_conflicts(moving, "a", note, kStart).empty());
}

TEST(RouteUses, ANoteIsWrittenOncePerHalfDayAndKeepsItsBeginning) {
  const auto config = config_of({{"**", "a"}});
  const auto note = note_of(config, 0);
  EXPECT_FALSE(with_route_use(note, use_of(config, 0, kStart + 11h)));
  const auto later = with_route_use(note, use_of(config, 0, kStart + 13h)).value();
  const auto conflicts = route_conflicts(config_of({{"**", "b"}}), "a", later, kStart + 15h);
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_NE(conflicts[0].find("since 15h ago, last seen 2h ago"), std::string::npos)
      << conflicts[0];
}

TEST(RouteUses, AnEntryExpiresAfterAWeek) {
  const auto old = note_of(config_of({{"**", "a"}}), 0);
  const auto own = config_of({{"**", "b"}});
  EXPECT_EQ(route_conflicts(own, "a", old, kStart + 24h * 7).size(), 1U);
  EXPECT_TRUE(route_conflicts(own, "a", old, kStart + 24h * 8).empty());
  const auto next = with_route_use(old, use_of(own, 0, kStart + 24h * 8)).value();
  EXPECT_EQ(std::count(next.begin(), next.end(), '\n'), 2) << "a version and one entry: " << next;
}

TEST(RouteUses, ANoteStaysWithinWhatAStoreKeeps) {
  std::string note;
  const std::string long_name(500, 'x');
  for (int i = 0; i < 200; ++i) {
    auto config = config_of({{fmt::format("{}/{}", long_name, i), "a"}});
    note = with_route_use(note, use_of(config, 0, kStart + std::chrono::seconds(i))).value();
  }
  EXPECT_LE(note.size(), 32'768U);
  EXPECT_NE(note.find("/199\n"), std::string::npos) << "the newest is kept";
}

TEST(RouteUses, AnUnknownFormatIsNotReplaced) {
  const auto config = config_of({{"**", "a"}});
  for (const auto* other : {"dlock-routes2\nx\n", "anything"}) {
    EXPECT_FALSE(with_route_use(other, use_of(config, 0)));
  }
  const auto other_config = config_of({{"**", "b"}});
  EXPECT_TRUE(route_conflicts(other_config, "a", "anything", kStart).empty());
  EXPECT_THAT(route_conflicts(other_config, "a", "dlock-routes2\nx\n", kStart),
              testing::ElementsAre("store 'a': the note of routes has format 2; this program reads "
                                   "format 1; upgrade it"));
  for (const auto* line : {"", " ", "d 1 2 w", "d x 2 w **", "d 1 -2 w **", "d 1 2 w a//b"}) {
    const auto note = fmt::format("dlock-routes1\n{}\n", line);
    EXPECT_TRUE(route_conflicts(config_of({{"**", "b"}}), "a", note, milliseconds(3)).empty());
    EXPECT_TRUE(with_route_use(note, use_of(config, 0)));
  }
}

}  // namespace
}  // namespace dlock::core

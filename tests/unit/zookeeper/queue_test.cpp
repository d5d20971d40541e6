// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/queue.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlock::zookeeper {
namespace {

using Kind = QueueDecision::Kind;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string node(int id, std::string_view mark, std::string_view sequence) {
  return fmt::format("_c_{:08}-89ab-cdef-0123-456789abcdef-{}{}", id, mark, sequence);
}
std::string mutex(int id, std::string_view sequence) { return node(id, "lock-", sequence); }
std::string seal() { return "01234567-89ab-cdef-0123-456789abcdef-lock--0000000000"; }

TEST(Queue, AloneIsFirst) {
  EXPECT_EQ(decision_of(mutex(1, "0000000000"), {mutex(1, "0000000000")}).kind, Kind::first);
}

TEST(Queue, HasOnlyOneWhenNobodyElseIsInLine) {
  const auto own = mutex(1, "0000000000");
  EXPECT_TRUE(Queue({"1700000000", own}).has_only(own));
  EXPECT_FALSE(Queue({mutex(1, "0000000001")}).has_only(own));
  EXPECT_FALSE(Queue({own, mutex(1, "0000000001")}).has_only(own));
  EXPECT_FALSE(Queue(std::vector<std::string>()).has_only(own));
}

TEST(Queue, CountsWhoWaitsBeforeAndNotWhoHolds) {
  const auto holder = mutex(1, "0000000001");
  const auto first = mutex(2, "0000000002");
  const auto own = mutex(9, "0000000009");
  EXPECT_EQ(Queue({own}).waiting_before(own), 0U);
  EXPECT_EQ(Queue({own, holder}).waiting_before(own), 0U);
  EXPECT_EQ(Queue({own, holder, first, mutex(10, "0000000010")}).waiting_before(own), 1U);
  // Readers that hold it together, a writer that waits, and a reader behind him.
  const auto reader = [](int id) { return node(id, "__READ__", fmt::format("{:010}", id)); };
  const auto writer = node(5, "__WRIT__", "0000000005");
  EXPECT_EQ(Queue({reader(3), reader(4), own}).waiting_before(own), 0U);
  EXPECT_EQ(Queue({reader(3), reader(4), writer, reader(6), own}).waiting_before(own), 2U);
}

TEST(Queue, ChildrenOfNoContendersFormDoNotCount) {
  const auto decision = decision_of(mutex(1, "0000000005"),
                                    {"1700000000", "0000000000", "b", mutex(1, "0000000005")});
  EXPECT_EQ(decision.kind, Kind::first);
}

TEST(Queue, NumbersDecideNotTheOrderOfTheListing) {
  const std::vector<std::string> children = {mutex(1, "0000000012"), mutex(2, "0000000009"),
                                             mutex(3, "0000000010")};
  EXPECT_EQ(decision_of(children[1], children).kind, Kind::first);
  const auto last = decision_of(children[0], children);
  EXPECT_EQ(last.kind, Kind::behind);
  EXPECT_EQ(last.watch, children[2]);
  EXPECT_FALSE(last.watch_decides);
}

TEST(Queue, AReaderPassesReadersAndNobodyElse) {
  const auto own = node(9, "__READ__", "0000000009");
  const auto kazoo = std::string("0123456789abcdef0123456789abcdef__rlock__0000000002");
  const auto near = node(3, "__READ__", "0000000003");
  const std::string madelson = "read-0000000004";
  EXPECT_EQ(decision_of(own, {own, kazoo, near, madelson}).kind, Kind::first);
  for (const auto& alone : {mutex(1, "0000000001"), node(1, "__WRIT__", "0000000001"),
                            node(1, "move-lock-", "0000000001"), std::string("write-0000000001"),
                            std::string("0123456789abcdef0123456789abcdef__lock__0000000001")}) {
    const auto decision = decision_of(own, {own, alone, kazoo, near, madelson});
    EXPECT_EQ(decision.kind, Kind::behind) << alone;
    EXPECT_EQ(decision.watch, alone);
  }
  EXPECT_EQ(decision_of(own, {own, seal(), near}).seal, seal());
}

TEST(Queue, AReaderWatchesTheNearestThatIsAlone) {
  const auto own = node(9, "__READ__", "0000000009");
  const auto first = mutex(1, "0000000001");
  const auto second = mutex(4, "0000000004");
  const auto reader = node(5, "__READ__", "0000000005");
  const auto one = decision_of(own, {own, first, reader});
  EXPECT_EQ(one.watch, first);
  EXPECT_TRUE(one.watch_decides);
  const auto two = decision_of(own, {own, first, second, reader});
  EXPECT_EQ(two.watch, second);
  EXPECT_FALSE(two.watch_decides);
  const auto behind_a_reader = decision_of(own, {own, reader, mutex(6, "0000000006")});
  EXPECT_TRUE(behind_a_reader.watch_decides) << "who gives up before it was its turn";
  EXPECT_FALSE(decision_of(own, {own, node(1, "__WRIT__", "0000000001")}).watch_decides);
}

TEST(Queue, AWriterWaitsForTheReaderRightBeforeIt) {
  const auto own = mutex(9, "0000000009");
  const auto decision =
      decision_of(own, {own, node(5, "__READ__", "0000000005"), node(3, "__READ__", "0000000003")});
  EXPECT_EQ(decision.kind, Kind::behind);
  EXPECT_EQ(decision.watch, node(5, "__READ__", "0000000005"));
  EXPECT_FALSE(decision.watch_decides);
}

TEST(Queue, OnlyAPlainMutexNodeThatIsFirstDecides) {
  const auto own = mutex(9, "0000000009");
  for (const auto& [first, decides] : std::vector<std::pair<std::string, bool>>{
           {mutex(1, "0000000001"), true},
           {node(1, "__WRIT__", "0000000001"), false},
           {node(1, "__READ__", "0000000001"), false},
           {node(1, "move-lock-", "0000000001"), false},
           {"0123456789abcdef0123456789abcdef__lock__0000000001", false},
           {"_c_0123456789abcdef0123456789abcdef-lock-0000000001", false},
           {seal(), false}}) {
    const auto decision = decision_of(own, {own, first});
    EXPECT_EQ(decision.kind, Kind::behind) << first;
    EXPECT_EQ(decision.watch, first);
    EXPECT_EQ(decision.watch_decides, decides) << first;
  }
}

TEST(Queue, PastTheCountersEndANameIsNotOneNodes) {
  EXPECT_TRUE(has_name_of_several("/locks/a/" + mutex(1, "2147483647")));
  EXPECT_TRUE(has_name_of_several("/locks/a/" + node(1, "__READ__", "-2147483648")));
  EXPECT_FALSE(has_name_of_several("/locks/a/" + mutex(1, "2147483646")));
  EXPECT_FALSE(has_name_of_several("/locks/a/" + seal()));
  EXPECT_FALSE(has_name_of_several(""));
}

TEST(Queue, ASealIsBeforeEveryNumber) {
  const auto own = mutex(1, "0000000000");
  const auto decision = decision_of(own, {own, seal()});
  EXPECT_EQ(decision.kind, Kind::behind);
  EXPECT_EQ(decision.watch, seal());
  const auto wrapped = mutex(1, "-2147483648");
  EXPECT_EQ(decision_of(wrapped, {wrapped, seal()}, {{wrapped, 5}}).watch, seal());
}

TEST(Queue, AReaderWithItsWritersNumberIsAheadOfWhoeverComesLater) {
  const auto own = mutex(1, "0000000006");
  const auto decision =
      decision_of(own, {node(2, "__READ__", "0000000005"), own, node(2, "__WRIT__", "0000000005")});
  EXPECT_EQ(decision.kind, Kind::behind);
  EXPECT_FALSE(decision.watch_decides);
  // In one order, however the server lists them: all clients wait for the same one.
  const auto reader = node(2, "__READ__", "0000000005");
  const auto writer = node(2, "__WRIT__", "0000000005");
  EXPECT_EQ(decision_of(own, {reader, writer, own}).watch, writer);
  EXPECT_EQ(decision_of(own, {writer, reader, own}).watch, writer);
}

TEST(Queue, ReadersAloneAreSeenToo) {
  const auto own = mutex(1, "0000000006");
  EXPECT_TRUE(decision_of(own, {node(2, "__READ__", "0000000005"), own}).read_write);
  EXPECT_TRUE(decision_of(own, {node(2, "__WRIT__", "0000000005"), own}).read_write);
  EXPECT_FALSE(decision_of(own, {mutex(2, "0000000005"), own}).read_write);
}

TEST(Queue, AMissingNodeIsSaidToBeMissing) {
  EXPECT_EQ(decision_of(mutex(1, "0000000006"), {mutex(2, "0000000005")}).kind, Kind::missing);
  EXPECT_EQ(decision_of("", {}).kind, Kind::missing);
}

TEST(Queue, AtTheCountersEndBirthsDecide) {
  const auto own = mutex(1, "2147483647");
  const auto tied = mutex(2, "2147483647");
  const auto negative = mutex(3, "-2147483648");
  const auto numbered = mutex(4, "2147483646");
  const std::vector<std::string> children = {own, tied, negative, numbered};

  const auto asked = decision_of(own, children);
  EXPECT_EQ(asked.kind, Kind::unborn);
  EXPECT_THAT(asked.unborn, UnorderedElementsAre(own, tied, negative, numbered));

  const Births births = {{own, 20}, {tied, 30}, {negative, 10}, {numbered, 5}};
  const auto decision = decision_of(own, children, births);
  EXPECT_EQ(decision.kind, Kind::behind);
  EXPECT_EQ(decision.watch, negative);
  EXPECT_FALSE(decision.watch_decides);
  EXPECT_EQ(decision_of(tied, children, births).watch, own);
  EXPECT_EQ(decision_of(numbered, children, births).kind, Kind::first);
}

// A name that was written by hand, or a counter that went all the way round.
TEST(Queue, ANodeWithoutANumberOfItsOwnThatIsOlderIsNotPassed) {
  const auto own = mutex(1, "0000000007");
  const auto earlier = mutex(2, "0000000003");
  for (const char* number : {"2147483647", "-000000001", "-2147483648"}) {
    const auto old = mutex(3, number);
    const std::vector<std::string> children = {own, old, earlier};
    EXPECT_EQ(decision_of(own, children).kind, Kind::unborn) << number;
    // Between the two.
    EXPECT_EQ(decision_of(own, children, {{earlier, 10}, {old, 20}, {own, 30}}).watch, old);
    EXPECT_EQ(decision_of(earlier, children, {{earlier, 10}, {old, 20}, {own, 30}}).kind,
              Kind::first);
    // Before both: whoever comes next waits for it, too.
    EXPECT_EQ(decision_of(old, children, {{earlier, 20}, {old, 10}, {own, 30}}).kind, Kind::first);
    EXPECT_EQ(decision_of(earlier, children, {{earlier, 20}, {old, 10}, {own, 30}}).watch, old);
    // After both.
    EXPECT_EQ(decision_of(old, children, {{earlier, 10}, {old, 30}, {own, 20}}).watch, own);
  }
}

TEST(Queue, ListsContendersInLine) {
  std::vector<std::string> names;
  for (const auto& contender :
       in_line({mutex(2, "0000000012"), "1700000000", seal(), mutex(1, "0000000002")})) {
    names.push_back(contender.name);
  }
  EXPECT_THAT(names, ElementsAre(seal(), mutex(1, "0000000002"), mutex(2, "0000000012")));
}

}  // namespace
}  // namespace dlock::zookeeper

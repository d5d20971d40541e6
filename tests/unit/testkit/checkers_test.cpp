// SPDX-License-Identifier: Apache-2.0
//
// The checkers' own tests: histories made by hand, good ones that must pass and bad ones that must
// not. A history is written as one line: events with `;` between, each a second and
//
//   G<id> name client [#token] [until N] [shared] [permits K]   granted        E<id> until N
//   extended R<id>  release called                  L<id>  told lost      S<id>  became a reader W
//   name client  wants it                U name client  gives up D client  dies F  something broken
//   H  all whole again
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/leaders.hpp"
#include "testkit/checkers/leftovers.hpp"
#include "testkit/checkers/permits.hpp"
#include "testkit/checkers/progress.hpp"
#include "testkit/checkers/register.hpp"

namespace dlock::checkers {
namespace {

using std::chrono::seconds;

TimePoint second(int number) { return TimePoint(seconds(number)); }

EventKind kind_of(char letter) {
  switch (letter) {
    case 'G':
      return EventKind::granted;
    case 'E':
      return EventKind::extended;
    case 'S':
      return EventKind::shared;
    case 'R':
      return EventKind::releasing;
    case 'L':
      return EventKind::told_lost;
    case 'W':
      return EventKind::wanted;
    case 'U':
      return EventKind::given_up;
    case 'D':
      return EventKind::died;
    case 'F':
      return EventKind::faulted;
    case 'H':
      return EventKind::healed;
    default:
      throw std::invalid_argument(fmt::format("no event '{}'", letter));
  }
}

Event event(const std::string& text) {
  std::istringstream in(text);
  Event event;
  int at = 0;
  std::string what;
  if (!(in >> at >> what)) throw std::invalid_argument("not an event: " + text);
  event.at = second(at);
  event.kind = kind_of(what[0]);
  if (what.size() > 1) event.grant = std::stoull(what.substr(1));
  const bool named = event.kind == EventKind::granted || event.kind == EventKind::wanted ||
                     event.kind == EventKind::given_up;
  if (named) in >> event.name;
  if (named || event.kind == EventKind::died) in >> event.client;
  int number = 0;
  for (std::string word; in >> word;) {
    if (word[0] == '#') {
      event.token = std::stoull(word.substr(1));
    } else if (word == "shared") {
      event.mode = Mode::shared;
    } else if (word == "until" && in >> number) {
      event.until = second(number);
    } else if (word == "permits" && in >> number) {
      event.permits = static_cast<std::uint64_t>(number);
    } else {
      throw std::invalid_argument(fmt::format("what is '{}' in: {}", word, text));
    }
  }
  return event;
}

History history(const std::string& text) {
  History events;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ';');) events.push_back(event(one));
  return events;
}

std::string words(const Violations& violations) {
  std::string text;
  for (const auto& one : violations) text += one.what + "\n";
  return text;
}

template <typename Check>
void all_pass(Check check, std::initializer_list<const char*> histories) {
  for (const auto* text : histories) {
    const auto found = check(history(text));
    EXPECT_TRUE(found.empty()) << text << "\n" << words(found);
  }
}

template <typename Check>
void all_are_rejected(Check check, std::initializer_list<const char*> histories) {
  EXPECT_GE(histories.size(), 20U);
  for (const auto* text : histories) EXPECT_FALSE(check(history(text)).empty()) << text;
}

TEST(CheckExclusion, PassesGoodHistories) {
  all_pass(check_exclusion, {
                                "1 G1 a A; 2 R1; 2 G2 a B",
                                "1 G1 a A; 1 G2 b B",
                                "1 G1 a A until 5; 5 G2 a B",
                                "1 G1 a A until 5; 3 L1; 3 G2 a B",
                                "1 G1 a A until 5; 4 E1 until 8; 8 G2 a B",
                                "1 G1 a A; 2 D A; 3 G2 a B",
                                "1 G1 a A; 2 R1; 3 G2 a A; 4 R2; 5 G3 a A",
                                "1 G1 a/b A; 1 G2 a B; 1 G3 b C",
                            });
}

TEST(CheckReaders, TogetherAndNeverBesideAWriter) {
  all_pass(check_exclusion, {
                                "1 G1 a A shared; 2 G2 a B shared; 3 R1; 4 R2; 5 G3 a C",
                                "1 G1 a A; 2 S1; 3 G2 a B shared; 4 R1; 5 R2",
                                "1 G1 a A shared until 5; 5 G2 a B",
                            });
  for (const auto* text : {
           "1 G1 a A shared; 2 G2 a B",
           "1 G1 a A; 2 G2 a B shared",
           "1 G1 a A shared; 2 G2 a B shared; 3 R1; 4 G3 a C",
           "1 G1 a A; 2 S1; 3 G2 a B",
           "1 G1 a A; 2 G2 a B shared; 3 S1",
           "1 G1 a A; 2 R1; 3 S1",
           "1 S1",
       }) {
    EXPECT_FALSE(check_exclusion(history(text)).empty()) << text;
  }
}

TEST(CheckReaders, TokensRefuseByWritersOnly) {
  all_pass(check_tokens, {
                             "1 G1 a A #5 shared; 2 G2 a B #3 shared; 3 G3 a C #6",
                             "1 G1 a A #1; 2 R1; 3 G2 a B #9 shared; 4 G3 a C #2 shared",
                         });
  for (const auto* text : {
           "1 G1 a A #5; 2 R1; 3 G2 a B #4 shared",
           "1 G1 a A #5 shared; 2 R1; 3 G2 a B #4",
           "1 G1 a A #5 shared; 2 G2 a B #5 shared; 3 G3 a C #5",
           "1 G1 a A #5 shared; 2 G2 a B shared",
       }) {
    EXPECT_FALSE(check_tokens(history(text)).empty()) << text;
  }
}

TEST(CheckExclusion, RejectsBadHistories) {
  all_are_rejected(check_exclusion, {
                                        "1 G1 a A; 2 G2 a B",
                                        "1 G1 a A; 1 G2 a B",
                                        "1 G1 a A; 2 G2 a A",
                                        "1 G1 a A until 5; 4 G2 a B",
                                        "1 G1 a A until 5; 4 E1 until 8; 6 G2 a B",
                                        "1 G1 a A until 9; 4 E1 until 6; 5 G2 a B",
                                        "1 G1 a A; 3 G2 a B; 4 R1",
                                        "1 G1 a A; 3 G2 a B; 4 L1",
                                        "1 G1 a A; 2 R1; 3 G2 a B; 4 G3 a C",
                                        "1 G1 a A; 2 D B; 3 G2 a B",
                                        "1 G1 a A; 3 G2 a B; 4 D A",
                                        "1 G1 b A; 1 G2 a B; 2 R2; 2 G3 b C",
                                        "1 G1 a A until 3; 3 G2 a B until 9; 5 G3 a C",
                                        "1 G1 a A; 2 G2 b B; 3 R2; 4 G3 a C",
                                        "1 G1 a A until 5; 2 G2 a B until 3; 3 R2; 4 R1",
                                        "1 G1 a A; 2 R1; 3 G1 a A",
                                        "5 G1 a A; 2 R1; 6 G2 a B",
                                        "1 R1; 2 G1 a A",
                                        "1 G1 a A until 5; 6 E1 until 9",
                                        "1 G1 a A until 5; 5 E1 until 9; 6 G2 a B",
                                        "1 G1 a A until 5; 4 L1; 4 E1 until 9; 5 G2 a B",
                                        "1 G1 a A; 2 R1; 3 E1 until 9; 4 G2 a B",
                                        "1 G1 a A; 2 D A; 3 E1 until 9",
                                        "2 E7 until 9",
                                    });
}

Violations permits_of_3(const History& events) { return check_permits(events, 3); }

TEST(CheckPermits, PassesGoodHistories) {
  all_pass(permits_of_3, {
                             "1 G1 a A permits 1; 2 G2 a B permits 2; 3 R1; 4 G3 a C permits 1",
                             "1 G1 a A permits 3; 2 L1; 3 G2 a B permits 3",
                             "1 G1 a A permits 3 until 5; 5 G2 a B permits 3",
                             "1 G1 a A permits 2; 1 G2 b B permits 2",
                             "1 G1 a A permits 3; 2 D A; 3 G2 a B permits 3",
                             "1 G1 a A permits 2; 2 G2 a B",
                         });
}

TEST(CheckPermits, RejectsBadHistories) {
  for (const auto* text : {
           "1 G1 a A permits 4",
           "1 G1 a A permits 2; 2 G2 a B permits 2",
           "1 G1 a A permits 1; 2 G2 a B permits 1; 3 G3 a C permits 1; 4 G4 a D permits 1",
           "1 G1 a A permits 3 until 5; 4 G2 a B permits 1",
           "1 G1 a A permits 3 until 5; 4 E1 until 9; 6 G2 a B permits 1",
           "1 G1 a A permits 3; 1 G2 a A permits 1",
           "1 G1 a A permits 2; 2 G2 a B permits 2; 3 R1; 4 R2",
           "1 R1; 2 G1 a A permits 1",
       }) {
    EXPECT_FALSE(permits_of_3(history(text)).empty()) << text;
  }
}

TEST(CheckTokens, PassesGoodHistories) {
  all_pass(check_tokens, {
                             "1 G1 a A #1; 2 R1; 3 G2 a B #2",
                             "1 G1 a A #9; 1 G2 b B #3",
                             "1 G1 a A; 2 R1; 3 G2 a B",
                             "1 G1 a A #1; 2 R1; 3 G2 a B #7000000000",
                         });
}

TEST(CheckTokens, RejectsBadHistories) {
  all_are_rejected(check_tokens, {
                                     "1 G1 a A #2; 2 R1; 3 G2 a B #1",
                                     "1 G1 a A #2; 2 R1; 3 G2 a B #2",
                                     "1 G1 a A #2; 2 R1; 3 G2 a A #2",
                                     "1 G1 a A #2; 2 R1; 3 G2 a B",
                                     "1 G1 a A; 2 R1; 3 G2 a B #2",
                                     "1 G1 a A #0; 2 R1; 3 G2 a B #0",
                                     "1 G1 a A #5; 2 G2 b B #9; 3 R1; 4 G3 a C #4",
                                     "1 G1 a A #1; 2 R1; 3 G2 a B #3; 4 R2; 5 G3 a C #2",
                                     "1 G1 a A #1; 2 R1; 3 G2 a B; 4 R2; 5 G3 a C #2",
                                     "1 G1 a A #2147483647; 2 R1; 3 G2 a B #0",
                                     "1 G1 a A #18446744073709551615; 2 R1; 3 G2 a B #1",
                                     "1 G1 a A #3; 2 L1; 3 G2 a B #3",
                                     "1 G1 a A #3; 2 D A; 3 G2 a B #2",
                                     "1 G1 a A #3 until 2; 3 G2 a B #2",
                                     "1 G1 b A #3; 2 R1; 3 G2 b B #2; 4 G3 a C #1",
                                     "1 G1 a A #1; 1 G2 a B #1",
                                     "1 G1 a A #5; 2 R1; 3 G2 a B #6; 4 R2; 5 G3 a C #6",
                                     "1 G1 a A #5; 2 R1; 3 G2 a B #6; 4 R2; 5 G3 a C #5",
                                     "1 G1 a A #1; 2 R1; 3 G1 a B #2",
                                     "1 R1; 2 G1 a A #1",
                                     "9 G1 a A #1; 2 R1; 10 G2 a B #2",
                                 });
}

TEST(CheckTelling, PassesGoodHistories) {
  all_pass(check_telling, {
                              "1 G1 a A until 5; 4 L1",
                              "1 G1 a A until 5; 7 L1",
                              "1 G1 a A until 5; 4 L1; 5 R1",
                              "1 G1 a A; 2 R1",
                              "1 G1 a A until 3; 2 E1 until 5; 4 E1 until 7",
                          });
}

TEST(CheckTelling, RejectsBadHistories) {
  all_are_rejected(check_telling, {
                                      "1 G1 a A; 2 L1; 3 L1",
                                      "1 G1 a A; 2 L1; 2 L1",
                                      "1 G1 a A; 2 R1; 3 L1",
                                      "1 G1 a A; 2 R1; 3 R1",
                                      "1 G1 a A; 2 R1; 2 R1",
                                      "1 G1 a A until 4; 2 L1; 3 E1 until 9",
                                      "1 G1 a A until 4; 2 R1; 3 E1 until 9",
                                      "1 G1 a A until 4; 5 E1 until 9",
                                      "1 G1 a A until 4; 4 E1 until 9",
                                      "1 L1; 2 G1 a A",
                                      "1 L1",
                                      "1 R1",
                                      "1 E1 until 5",
                                      "1 G1 a A; 2 L2",
                                      "1 G1 a A; 2 R2",
                                      "1 G1 a A until 4; 2 E2 until 9",
                                      "1 G1 a A; 2 D A; 3 L1",
                                      "1 G1 a A until 9; 2 D A; 3 E1 until 12",
                                      "1 G1 a A; 2 R1; 3 G1 b B",
                                      "3 G1 a A; 2 L1",
                                      "1 G1 a A until 4; 2 L1; 3 R1; 4 R1",
                                  });
}

Violations progress_within_5(const History& events) {
  return check_progress(events, seconds(5), second(100));
}

TEST(CheckProgress, PassesGoodHistories) {
  all_pass(progress_within_5, {
                                  "1 W a A; 6 G1 a A; 90 R1",
                                  "1 W a A; 2 G1 a A; 3 W a B; 40 R1; 44 G2 a B",
                                  "1 W a A; 4 U a A",
                                  "1 F; 2 W a A; 50 H; 54 G1 a A",
                                  "1 W a A; 2 F; 60 H; 61 G1 a A",
                                  "1 W a A; 2 G1 a A; 3 W a B; 4 D A; 8 G2 a B",
                                  "1 W a A; 3 D A",
                                  "96 W a A",
                              });
}

TEST(CheckProgress, RejectsBadHistories) {
  all_are_rejected(progress_within_5, {
                                          "1 W a A",
                                          "1 W a A; 7 G1 a A",
                                          "1 W a A; 7 U a A",
                                          "1 W a A; 2 G1 a A; 3 W a B; 4 R1",
                                          "1 W a A; 2 G1 a A; 3 W a B; 4 R1; 10 G2 a B",
                                          "1 W a A; 2 G1 a A; 3 W a B; 4 L1; 10 G2 a B",
                                          "1 W a A; 2 G1 a A; 3 W a B; 4 D A; 10 G2 a B",
                                          "1 W a A; 1 W a B; 2 D A; 9 G1 a B",
                                          "1 W a A; 1 W a B; 2 U a A; 9 G1 a B",
                                          "1 F; 2 W a A; 10 H; 16 G1 a A",
                                          "1 F; 2 W a A; 10 H",
                                          "1 W a A; 2 F; 3 H; 9 G1 a A",
                                          "1 W a A; 7 F; 8 H; 9 G1 a A",
                                          "1 W a A; 2 G1 a A; 3 R1; 4 W a B; 10 G2 a B",
                                          "1 W a A; 1 W b B; 2 G1 a A",
                                          "1 W a A; 2 G1 b A; 8 G2 a A",
                                          "1 W a A; 2 G1 a A; 3 W a B; 4 F; 5 R1; 6 H; 12 G2 a B",
                                          "1 W a A; 2 G1 a A; 3 W a A; 4 R1; 10 G2 a A",
                                          "1 W a A; 2 W a B; 3 G1 a B; 4 R1; 10 G2 a A",
                                          "94 W a A",
                                          "1 W a A; 2 D B; 9 G1 a A",
                                          "1 W a A; 2 H; 20 G1 a A",
                                      });
}

struct OneWrite {
  int at;
  GrantId grant;
  std::uint64_t token;
  bool accepted;
};

Violations check_writes(const std::vector<OneWrite>& list) {
  std::vector<Write> writes;
  for (const auto& one : list)
    writes.push_back({second(one.at), one.grant, one.token, one.accepted});
  return check_register(writes);
}

constexpr bool yes = true;
constexpr bool no = false;

TEST(CheckRegister, PassesGoodHistories) {
  const std::vector<std::vector<OneWrite>> good = {
      {{1, 1, 5, yes}, {2, 1, 5, yes}, {3, 2, 6, yes}},
      {{1, 1, 5, yes}, {2, 2, 6, yes}, {3, 1, 5, no}, {4, 2, 6, yes}},
      {},
  };
  for (const auto& list : good) EXPECT_TRUE(check_writes(list).empty());
}

TEST(CheckRegister, RejectsBadHistories) {
  const std::vector<std::vector<OneWrite>> bad = {
      {{1, 1, 5, yes}, {2, 2, 4, yes}},
      {{1, 2, 6, yes}, {2, 1, 5, yes}},
      {{1, 2, 6, yes}, {2, 1, 5, no}, {3, 1, 5, yes}},
      {{1, 1, 5, yes}, {2, 2, 6, yes}, {3, 1, 5, yes}},
      {{1, 1, 5, no}},
      {{1, 1, 0, no}},
      {{1, 1, 5, yes}, {2, 1, 5, no}},
      {{1, 1, 5, yes}, {2, 2, 6, no}},
      {{1, 1, 5, yes}, {2, 2, 5, yes}},
      {{1, 1, 5, yes}, {2, 2, 5, no}},
      {{1, 2, 6, yes}, {2, 1, 5, no}, {3, 3, 5, no}},
      {{1, 2, 6, yes}, {2, 1, 0, yes}},
      {{1, 1, 1, yes}, {2, 2, 2, yes}, {3, 3, 3, yes}, {4, 2, 2, yes}},
      {{1, 1, 1, yes}, {2, 2, 2, yes}, {3, 3, 3, no}},
      {{2, 1, 1, yes}, {1, 2, 2, yes}},
      {{1, 1, 18446744073709551615U, yes}, {2, 2, 0, yes}},
      {{1, 1, 2147483648U, yes}, {2, 2, 2147483647U, yes}},
      {{1, 1, 5, no}, {2, 2, 6, yes}},
      {{1, 3, 9, yes}, {2, 1, 7, no}, {3, 2, 8, yes}},
      {{1, 1, 7, yes}, {2, 2, 9, yes}, {3, 3, 9, yes}},
      {{1, 1, 7, yes}, {3, 2, 8, yes}, {2, 1, 7, no}},
  };
  EXPECT_GE(bad.size(), 20U);
  for (std::size_t i = 0; i < bad.size(); ++i) EXPECT_FALSE(check_writes(bad[i]).empty()) << i;
}

TEST(CheckLeftovers, PassesWhatMayStay) {
  const Belongings none;
  EXPECT_TRUE(check_leftovers(none, none, second(1)).empty());
  EXPECT_TRUE(check_leftovers({{"a"}, {"w"}, {"socket"}, 3}, none, second(1)).empty());
  EXPECT_TRUE(check_leftovers({{"a"}, {}, {}, 3}, {{"a"}, {}, {}, 3}, second(1)).empty());
  EXPECT_TRUE(check_leftovers(none, {{"counter"}, {}, {}, 0}, second(1), {"counter"}).empty());
}

TEST(CheckLeftovers, RejectsWhatWasLeft) {
  struct Case {
    Belongings before;
    Belongings after;
    std::set<std::string> permitted;
  };
  const std::vector<Case> bad = {
      {{}, {{"a"}, {}, {}, 0}, {}},
      {{}, {{}, {"w"}, {}, 0}, {}},
      {{}, {{}, {}, {"socket"}, 0}, {}},
      {{}, {{}, {}, {}, 1}, {}},
      {{{}, {}, {}, 3}, {{}, {}, {}, 4}, {}},
      {{{"a"}, {}, {}, 0}, {{"a", "b"}, {}, {}, 0}, {}},
      {{{"a"}, {}, {}, 0}, {{"a", "a"}, {}, {}, 0}, {}},
      {{{"a"}, {}, {}, 0}, {{"b"}, {}, {}, 0}, {}},
      {{{"a", "b"}, {}, {}, 0}, {{"c"}, {}, {}, 0}, {}},
      {{}, {{"counter", "a"}, {}, {}, 0}, {"counter"}},
      {{}, {{"counter2"}, {}, {}, 0}, {"counter"}},
      {{}, {{"counter"}, {}, {}, 0}, {"counter2"}},
      {{{}, {"w"}, {}, 0}, {{}, {"w", "w"}, {}, 0}, {}},
      {{{}, {"w"}, {}, 0}, {{}, {"v"}, {}, 0}, {}},
      {{}, {{}, {"a"}, {}, 0}, {"b"}},
      {{{}, {}, {"socket", "pipe"}, 0}, {{}, {}, {"socket", "socket"}, 0}, {}},
      {{{}, {}, {"socket"}, 0}, {{}, {}, {"socket", "pipe"}, 0}, {}},
      {{{"w"}, {}, {}, 0}, {{}, {"w"}, {}, 0}, {}},
      {{{}, {"s"}, {}, 0}, {{}, {}, {"s"}, 0}, {}},
      {{{"a"}, {"w"}, {"s"}, 2}, {{}, {}, {}, 5}, {}},
      {{{"a"}, {"w"}, {"s"}, 2}, {{"a"}, {"w"}, {"s", "s"}, 1}, {}},
  };
  EXPECT_GE(bad.size(), 20U);
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_FALSE(check_leftovers(bad[i].before, bad[i].after, second(1), bad[i].permitted).empty())
        << i;
  }
}

TEST(CheckLeaders, OneAfterTheOtherIsRight) {
  EXPECT_EQ(words(check_leaders({{"a", 1, second(1), second(3)},
                                 {"b", 2, second(4), second(5)},
                                 {"a", 3, second(6), second(6)}})),
            "");
}

TEST(CheckLeaders, TwoAtOnceAreFound) {
  EXPECT_EQ(words(check_leaders({{"a", 1, second(1), second(3)}, {"b", 2, second(3), second(5)}})),
            "a and b lead at once, with tokens 1 and 2\n");
  EXPECT_NE(words(check_leaders({{"a", 1, second(1), second(9)}, {"b", 2, second(3), second(4)}})),
            "");
}

TEST(CheckLeaders, OneTokenIsForOneTerm) {
  EXPECT_EQ(words(check_leaders({{"a", 7, second(1), second(2)}, {"b", 7, second(3), second(4)}})),
            "a and b led with the same token 7\n");
}

}  // namespace
}  // namespace dlock::checkers

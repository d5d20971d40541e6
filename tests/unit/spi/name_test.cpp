// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/name.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace dlock::core {
namespace {

TEST(Name, AcceptsWhatTheRulesAllow) {
  for (const std::string& name :
       {std::string("a"), std::string("orders/42"), std::string("a/b/c"), std::string("with space"),
        std::string("100%"), std::string("a%2Fb"), std::string("..."), std::string("a/..b"),
        std::string("\xC3\xA4/\xE6\x97\xA5/\xF0\x9F\x94\x92"), std::string("\xC2\x80"),
        std::string("\xED\x9F\xBF"), std::string("{x}:*?\"'`\\"), std::string(512, 'x')}) {
    EXPECT_EQ(name_error(name), "") << name;
  }
}

TEST(Name, RefusesTheRestAndSaysWhere) {
  const std::pair<std::string, const char*> table[] = {
      {"", "empty"},
      {std::string(513, 'x'), "513 bytes"},
      {"/a", "begins with '/'"},
      {"a/", "ends with '/'"},
      {"/", "begins with '/'"},
      {"a//b", "empty part"},
      {".", "part '.'"},
      {"a/..", "part '..'"},
      {"../a", "part '..'"},
      {"a/./b", "part '.'"},
      {"a\r\nb", "control byte 0x0D at byte 2"},
      {std::string("a\0b", 3), "control byte 0x00 at byte 2"},
      {"tab\t", "control byte 0x09"},
      {"del\x7F", "control byte 0x7F"},
      {"\xFF", "not UTF-8 at byte 1"},
      {"a\x80", "not UTF-8 at byte 2"},
      {"\xC0\xAF", "not UTF-8"},          // overlong '/'
      {"\xE0\x80\xAF", "not UTF-8"},      // overlong '/'
      {"\xF0\x80\x80\xAF", "not UTF-8"},  // overlong '/'
      {"\xED\xA0\x80", "not UTF-8"},      // a surrogate
      {"\xF4\x90\x80\x80", "not UTF-8"},  // above U+10FFFF
      {"\xE6\x97", "not UTF-8"},          // cut off
  };
  for (const auto& [name, complaint] : table) {
    EXPECT_NE(name_error(name).find(complaint), std::string::npos)
        << name << ": " << name_error(name);
    EXPECT_TRUE(name_error(name).starts_with("this name ")) << name_error(name);
  }
}

TEST(Name, SplitsIntoParts) {
  EXPECT_EQ(split_name("a"), (std::vector<std::string_view>{"a"}));
  EXPECT_EQ(split_name("a/b/c"), (std::vector<std::string_view>{"a", "b", "c"}));
}

bool is_letter(unsigned char byte) { return byte >= 'a' && byte <= 'z'; }

TEST(Name, EscapesWhatIsNotPlain) {
  EXPECT_EQ(percent_escape("a/b c%", is_letter), "a%2Fb%20c%25");
  EXPECT_EQ(percent_escape("%", [](unsigned char) { return true; }), "%25");
  EXPECT_EQ(percent_escape("\xC3\xA4", is_letter), "%C3%A4");
  EXPECT_EQ(percent_unescape("a%2Fb%20c%25"), "a/b c%");
  EXPECT_EQ(percent_unescape("%41"), "A");
}

TEST(Name, LeavesAloneWhatEscapingCannotHaveMade) {
  for (const char* text : {"%", "%4", "100%", "%zz", "a%2fb", "%%25"}) {
    EXPECT_EQ(percent_unescape(text), text);
  }
}

TEST(Name, EscapesEachByteInTwoDigits) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const auto escaped = percent_escape(text, is_letter);
    EXPECT_EQ(escaped.size(), is_letter(static_cast<unsigned char>(byte)) ? 1U : 3U) << byte;
    EXPECT_EQ(percent_unescape(escaped), text) << byte;
  }
}

TEST(Name, EscapingIsInjectiveAndUndone) {
  std::mt19937 random(20240501);
  std::uniform_int_distribution<int> letters(0, 5);
  std::uniform_int_distribution<std::size_t> length(0, 6);
  const std::string alphabet("a%/2F\xC3", 6);
  std::set<std::string> texts;
  std::set<std::string> escaped;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t n = length(random); n > 0; --n) {
      text += alphabet[static_cast<std::size_t>(letters(random))];
    }
    texts.insert(text);
    const auto once = percent_escape(text, is_letter);
    escaped.insert(once);
    ASSERT_EQ(percent_unescape(once), text);
  }
  EXPECT_EQ(texts.size(), escaped.size());
}

}  // namespace
}  // namespace dlock::core

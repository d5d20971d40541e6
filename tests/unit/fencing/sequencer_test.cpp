// SPDX-License-Identifier: Apache-2.0
#include "dlock/sequencer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/store/standing.hpp"

namespace dlock {
namespace {

Sequencer grant(std::string name = "orders/42", std::uint64_t token = 17) {
  return {std::move(name), Mode::exclusive, token, "zk"};
}

/// What parse() finds wrong; empty if nothing.
std::string complaint(std::string_view text) {
  error_code ec;
  std::string why;
  const auto parsed = Sequencer::parse(text, ec, &why);
  EXPECT_EQ(parsed.has_value(), !ec);
  EXPECT_EQ(ec.failed(), !why.empty()) << text;
  if (ec) {
    EXPECT_EQ(ec, errc::invalid_sequencer);
  }
  return why;
}

TEST(Sequencer, IsOneReadableLine) {
  EXPECT_EQ(grant().to_string(), "dlock1:exclusive:17:zk:orders/42");
  EXPECT_EQ(Sequencer::parse("dlock1:exclusive:17:zk:orders/42"), grant());
}

TEST(Sequencer, ItsTextNeedsNoQuotingAnywhere) {
  std::string name;
  for (int byte = 0x20; byte < 0x7F; ++byte) {
    if (byte != '/') name += static_cast<char>(byte);
  }
  name += "/\xC3\xA9";
  const auto text = grant(name).to_string();
  const std::string safe = "-_./:~";
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           safe.find(c) != safe.npos;
  })) << text;
  EXPECT_EQ(Sequencer::parse(text), grant(name));
}

TEST(Sequencer, TheLongestOneFits) {
  std::string name;
  while (name.size() < 512) name += "\xC3\xA9";
  const Sequencer longest(name, Mode::exclusive, kTokenEnd - 1, std::string(255, ' '));
  const auto text = longest.to_string();
  EXPECT_LE(text.size(), Sequencer::kLongestText);
  EXPECT_EQ(Sequencer::parse(text), longest);
}

TEST(Sequencer, RefusesAGrantThatCannotBe) {
  EXPECT_THROW(grant("a//b"), LockError);
  EXPECT_THROW(grant("a", kTokenEnd), LockError);
  EXPECT_THROW(grant("a", 0), LockError) << "no store gives it";
  EXPECT_THROW(Sequencer("a", Mode::exclusive, 1, ""), LockError);
  EXPECT_THROW(Sequencer("a", Mode::exclusive, 1, std::string(256, 's')), LockError);
}

TEST(Sequencer, SaysWhatIsWrongWithAText) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "is empty"},
      {"17", "ends in its version"},
      {"dlock2:exclusive:17:zk:a", "it has format 2; this program reads format 1; upgrade it"},
      {"dlock1:upgradable:17:zk:a", "write 'exclusive' or 'shared'"},
      {"lock:exclusive:17:zk:a", "does not begin with 'dlock1:'"},
      {"dlock:exclusive:17:zk:a", "does not begin with 'dlock1:'"},
      {"dlock1:exclusive", "ends in its mode"},
      {"dlock1:exclusive::zk:a", "token"},
      {"dlock1:exclusive:-1:zk:a", "token"},
      {"dlock1:exclusive:+1:zk:a", "token"},
      {"dlock1:exclusive:017:zk:a", "token"},
      {"dlock1:exclusive:0:zk:a", "token is 0"},
      {"dlock1s:exclusive:17:zk:a:00", "parse_signed"},
      {"dlock1:exclusive:17x:zk:a", "token"},
      {"dlock1:exclusive:9007199254740992:zk:a", "2^53"},
      {"dlock1:exclusive:99999999999999999999999:zk:a", "2^53"},
      {"dlock1:exclusive:17:zk", "ends in its store"},
      {"dlock1:exclusive:17::a", "store's name is empty"},
      {"dlock1:exclusive:17:zk:", "this name is empty"},
      {"dlock1:exclusive:17:zk:a:b", "more than five fields"},
      {"dlock1:exclusive:17:zk:a//b", "empty part"},
      {"dlock1:exclusive:17:zk:a b", "0x20"},
      {"dlock1:exclusive:17:zk:a\n", "0x0A"},
      {"dlock1:exclusive:17:zk:a~", "without two"},
      {"dlock1:exclusive:17:zk:a~4", "without two"},
      {"dlock1:exclusive:17:zk:a~3a", "without two"},
      {"dlock1:exclusive:17:zk:~61", "needs none"},
      {"dlock1:exclusive:17:zk:a~00", "control byte"},
      {"dlock1:exclusive:17:zk:a~FF", "not UTF-8"},
      {" dlock1:exclusive:17:zk:a", "does not begin"},
      {std::string(4097, 'a'), "4097 bytes"},
  };
  for (const auto& [text, wrong] : cases) {
    EXPECT_NE(complaint(text).find(wrong), std::string::npos) << text << ": " << complaint(text);
  }
  try {
    Sequencer::parse("dlock1:exclusive:x:zk:a");
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_sequencer);
    EXPECT_NE(std::string(error.what()).find("2^53"), std::string::npos);
  }
}

TEST(Sequencer, ASignedOneIsReadWithItsKeyOnly) {
  const std::string key = "0123456789abcdef-a-key";
  const auto sequencer = grant("orders/42 \xC3\xA9", 17);
  const auto text = sequencer.sign(key);
  EXPECT_EQ(text.rfind("dlock1s:exclusive:17:", 0), 0U) << text;
  EXPECT_LE(text.size(), Sequencer::kLongestText);
  EXPECT_EQ(Sequencer::parse_signed(text, key), sequencer);
  error_code ec;
  std::string why;
  EXPECT_FALSE(Sequencer::parse(text, ec, &why));
  EXPECT_NE(why.find("parse_signed"), std::string::npos) << why;
  EXPECT_FALSE(Sequencer::parse_signed(sequencer.to_string(), key, ec, &why));
  EXPECT_EQ(ec, errc::invalid_sequencer);
  EXPECT_NE(why.find("not signed"), std::string::npos) << why;
  EXPECT_FALSE(Sequencer::parse_signed(text, key + "x", ec, &why));
  EXPECT_NE(why.find("signature"), std::string::npos) << why;
  EXPECT_THROW(Sequencer::parse_signed(text, key + "x"), LockError);
  for (const std::string_view bad : {"", "dlock1s", "dlock1s:", "dlock1s:exclusive:17:zk:a"}) {
    EXPECT_FALSE(Sequencer::parse_signed(bad, key, ec, &why)) << bad;
    EXPECT_EQ(ec, errc::invalid_sequencer);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int bit : {1, 32}) {
      auto altered = text;
      altered[i] = static_cast<char>(altered[i] ^ bit);
      EXPECT_FALSE(Sequencer::parse_signed(altered, key, ec)) << altered;
    }
    EXPECT_FALSE(Sequencer::parse_signed(text.substr(0, i), key, ec));
  }
}

TEST(Sequencer, AKeyThatIsTooShortIsRefused) {
  const auto sequencer = grant("a", 17);
  EXPECT_THROW(sequencer.sign(std::string(Sequencer::kShortestKey - 1, 'k')), LockError);
  error_code ec;
  EXPECT_THROW(Sequencer::parse_signed("x", "", ec), LockError);
  const auto text = sequencer.sign(std::string(Sequencer::kShortestKey, 'k'));
  EXPECT_TRUE(Sequencer::parse_signed(text, std::string(Sequencer::kShortestKey, 'k'), ec));
}

// Whatever is accepted is exactly what to_string() writes; nothing else happens on any bytes.
TEST(Sequencer, TakesAnyBytes) {
  std::mt19937 random(7);
  const std::string seed = "dlock1:exclusive:17:zk:orders/42~C3~A9";
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = seed;
    for (auto changes = random() % 3 + 1; changes > 0; --changes) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 3);
          break;
        default:
          text.insert(at, 1, "0:~/9A"[random() % 6]);
      }
      if (text.empty()) text = "x";
    }
    error_code ec;
    if (const auto parsed = Sequencer::parse(text, ec)) {
      ++accepted;
      ASSERT_EQ(parsed->to_string(), text);
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Standing, IsTheStoresWord) {
  const auto sequencer = grant();
  LockStatus status;
  EXPECT_EQ(core::standing_of(sequencer, status).standing, Standing::not_held);
  status.held = true;
  status.token = 17;
  EXPECT_EQ(core::standing_of(sequencer, status).standing, Standing::current);
  status.token = 18;
  EXPECT_EQ(core::standing_of(sequencer, status).standing, Standing::superseded);
  EXPECT_EQ(core::standing_of(sequencer, status).present_token, 18U);
  status.token = 16;
  const auto back = core::standing_of(sequencer, status);
  EXPECT_EQ(back.standing, Standing::superseded);
  EXPECT_NE(back.message.find("lower token 16"), std::string::npos);
  status.token.reset();
  EXPECT_EQ(core::standing_of(sequencer, status).standing, Standing::superseded);
}

TEST(Standing, AReaderWhoseLeaseIsOverHoldsNothing) {
  const Sequencer reader(grant().name(), Mode::shared, 17, grant().store());
  LockStatus status;
  status.held = true;
  status.mode = Mode::shared;
  status.readers = {{{}, 16, {}, {}}, {{}, 17, {}, std::chrono::milliseconds(1)}};
  EXPECT_EQ(core::standing_of(reader, status).standing, Standing::current);
  status.readers[1].remaining = std::chrono::milliseconds(0);
  EXPECT_EQ(core::standing_of(reader, status).standing, Standing::superseded);
  status.readers[1].remaining.reset();
  EXPECT_EQ(core::standing_of(reader, status).standing, Standing::current);
  EXPECT_EQ(core::standing_of(grant(), status).standing, Standing::superseded);
}

TEST(Standing, ALeaseThatIsOverHoldsNothing) {
  LockStatus status;
  status.held = true;
  status.token = 17;
  status.remaining = std::chrono::milliseconds(1);
  EXPECT_EQ(core::standing_of(grant(), status).standing, Standing::current);
  status.remaining = std::chrono::milliseconds(0);
  EXPECT_EQ(core::standing_of(grant(), status).standing, Standing::not_held);
}

}  // namespace
}  // namespace dlock

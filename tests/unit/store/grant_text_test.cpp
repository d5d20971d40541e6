// SPDX-License-Identifier: Apache-2.0
#include "core/store/grant_text.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

GrantText sample() {
  return {{"orders/42", "default", 17}, "0b54c3a1-0000-4000-8000-000000000001", make_secret()};
}

std::string why_refused(std::string_view text) {
  try {
    GrantText::read(text);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    return error.server_text();
  }
  return {};
}

TEST(GrantText, IsReadAsItWasWritten) {
  auto grant = sample();
  for (const std::string name : {"orders/42", "a:b%c", "späti", "x y"}) {
    grant.grant.name = name;
    grant.grant.store = name;
    const auto text = grant.write();
    EXPECT_EQ(text.find_first_of(" \n\t"), text.npos) << text;
    const auto read = GrantText::read(text + "\n");
    EXPECT_EQ(read.grant.name, name);
    EXPECT_EQ(read.grant.store, name);
    EXPECT_EQ(read.grant.token, 17U);
    EXPECT_EQ(read.owner_id, grant.owner_id);
    EXPECT_EQ(read.secret, grant.secret);
  }
}

TEST(GrantText, TheLongestNameFits) {
  auto grant = sample();
  grant.grant.name = std::string(512, ':');
  grant.grant.store = std::string(255, ':');
  EXPECT_LE(grant.write().size(), ExportedGrant::kLongestText);
  EXPECT_EQ(ExportedGrant::read(grant.write()).name, grant.grant.name);
}

TEST(GrantText, WhatIsWrongIsSaidWithoutTheSecret) {
  const auto grant = sample();
  const auto text = grant.write();
  EXPECT_NE(why_refused("").find("does not begin"), std::string::npos);
  EXPECT_NE(why_refused("dlock1:exclusive:17:zk:a").find("does not begin"), std::string::npos);
  EXPECT_NE(why_refused("dlock-grant2" + text.substr(12))
                .find("it has format 2; this program reads format 1; upgrade it"),
            std::string::npos);
  EXPECT_NE(why_refused(std::string(5000, 'x')).find("too long"), std::string::npos);
  EXPECT_NE(why_refused(text + ":more").find("more fields"), std::string::npos);
  for (std::size_t cut = 13; cut < text.size(); ++cut) {
    const auto why = why_refused(text.substr(0, cut));
    EXPECT_FALSE(why.empty()) << cut;
    EXPECT_EQ(why.find(grant.secret), std::string::npos);
  }
  for (std::size_t at = 13; at < text.size(); ++at) {
    auto altered = text;
    altered[at] = altered[at] == '1' ? '2' : '1';
    EXPECT_FALSE(why_refused(altered).empty()) << altered;
  }
}

TEST(GrantText, TheStoreIsNotToldTheSecret) {
  const auto grant = sample();
  const auto adoption = grant.adoption();
  EXPECT_EQ(adoption.owner_id, grant.owner_id);
  EXPECT_EQ(adoption.token, 17U);
  EXPECT_EQ(adoption.proof, proof_of(grant.secret));
  EXPECT_EQ(adoption.proof.find(grant.secret), std::string::npos);
  EXPECT_NE(make_secret(), make_secret());
}

}  // namespace
}  // namespace dlock::core

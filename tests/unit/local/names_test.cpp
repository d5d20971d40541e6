// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "backends/local/rules/names.hpp"

namespace dlock::local {
namespace {

struct Row {
  std::string lock;
  std::string file;
};

TEST(LocalNames, AreReadableFileNames) {
  const Row rows[] = {
      {"a", "a.lock"},
      {"a/b", "a%2Fb.lock"},
      {"a/1700000000", "a%2F1700000000.lock"},
      {"orders/42", "orders%2F42.lock"},
      {"a%2Fb", "a%252Fb.lock"},
      {"two words", "two%20words.lock"},
      {"Bücher/ß", "Bücher%2Fß.lock"},
      {"...", "%2E...lock"},
      {".hidden", "%2Ehidden.lock"},
      {"a.lock", "a.lock.lock"},
      {"100%", "100%25.lock"},
      {"~", "%7E.lock"},
      {"a'b\"c$", "a%27b%22c%24.lock"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(file_name(row.lock), row.file);
    EXPECT_EQ(lock_name(row.file), row.lock);
    EXPECT_TRUE(is_lock_file_name(row.file));
  }
}

TEST(LocalNames, LongOnesEndInTheirHash) {
  const std::string long_name(512, 'x');
  const auto file = file_name(long_name);
  EXPECT_LE(file.size(), 255U);
  EXPECT_TRUE(file.starts_with("xxxx"));
  EXPECT_NE(file.find("%~"), std::string::npos);
  EXPECT_TRUE(file.ends_with(".lock"));
  EXPECT_FALSE(lock_name(file)) << "only the file knows";
  EXPECT_TRUE(is_lock_file_name(file));

  std::string other = long_name;
  other.back() = 'y';
  EXPECT_NE(file_name(other), file);
}

TEST(LocalNames, WhatAHolderIsAskedStandsBesideTheLock) {
  const auto file = file_name(std::string(250, 'n'));
  const auto beside = ask_file_name(file);
  EXPECT_LT(beside.size(), file.size());
  EXPECT_FALSE(is_lock_file_name(beside));
  EXPECT_EQ(lock_file_asked(beside), file);
  EXPECT_EQ(lock_file_asked(file), "");
  EXPECT_EQ(lock_file_asked(".new-123"), "");
}

TEST(LocalNames, TheLongestPlainNameAndTheFirstHashedOne) {
  EXPECT_EQ(file_name(std::string(250, 'n')), std::string(250, 'n') + ".lock");
  EXPECT_NE(file_name(std::string(251, 'n')).find("%~"), std::string::npos);
}

TEST(LocalNames, ACutNeitherHalvesAnEscapeNorACharacter) {
  for (std::size_t lead = 90; lead < 110; ++lead) {
    std::string slashes(lead, 'a');
    std::string umlauts(lead, 'a');
    for (int i = 0; i < 100; ++i) {
      slashes += i % 2 == 0 ? "/" : "b";
      umlauts += "ü";
    }
    for (const auto& name : {slashes, umlauts}) {
      const auto file = file_name(name);
      const auto kept = file.substr(0, file.find("%~"));
      ASSERT_NE(file.find("%~"), std::string::npos);
      EXPECT_LE(kept.size(), 100U);
      EXPECT_GT(kept.size(), 85U);
      EXPECT_TRUE(kept.back() == 'a' || kept.back() == 'b' || kept.ends_with("%2F") ||
                  kept.ends_with("ü"))
          << kept;
    }
  }
}

TEST(LocalNames, AreInjective) {
  std::set<std::string> files;
  std::set<std::string> names{"a",    "a/b",   "a%2Fb", "a%252Fb", "a.lock", "a/b/c", "a/b%2Fc",
                              "A",    "a b",   "a%20b", "%",       "%%",     "%25",   "%2525",
                              "a/.x", "a/..x", ".x",    "%2Ex",    "x%~y"};
  // A name that spells another one's hashed file must not meet it.
  const std::string long_name(400, 'q');
  names.insert(long_name);
  const auto file = file_name(long_name);
  names.insert(file.substr(0, file.size() - 5));
  for (const auto& name : names) files.insert(file_name(name));
  EXPECT_EQ(files.size(), names.size());
}

TEST(LocalNames, ForeignFilesAreNoLocks) {
  for (const std::string file : {"README", ".lock", ".new-1.lock", ".probe-1-2", "a%2.lock",
                                 "a%2f.lock", "a b.lock", "%61.lock"}) {
    EXPECT_FALSE(lock_name(file)) << file;
  }
}

TEST(LocalNames, PrefixesAreWholeParts) {
  EXPECT_TRUE(has_prefix("a", ""));
  EXPECT_TRUE(has_prefix("a", "a"));
  EXPECT_TRUE(has_prefix("a/b", "a"));
  EXPECT_TRUE(has_prefix("a/b", "a/"));
  EXPECT_TRUE(has_prefix("a/b/c", "a/b"));
  EXPECT_FALSE(has_prefix("ab", "a"));
  EXPECT_FALSE(has_prefix("a", "a/b"));
}

}  // namespace
}  // namespace dlock::local

// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_status.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace dlock {
namespace {

TEST(OwnerText, KeepsPidAndNamespace) {
  Owner owner;
  owner.pid = 4711;
  for (const std::uint32_t space : {0U, 4026531836U, 0xFFFFFFFFU}) {
    owner.pid_namespace = space;
    std::string text;
    append_pid(owner, text);
    Owner read;
    EXPECT_TRUE(read_pid(text, read)) << text;
    EXPECT_EQ(read.pid, owner.pid) << text;
    EXPECT_EQ(read.pid_namespace, space) << text;
  }
}

TEST(OwnerText, RefusesOtherFormats) {
  for (const auto* text : {"", "x", "12x", "12@", "12@x", "12@4294967296", "12@1 ", "@1"}) {
    Owner read;
    EXPECT_FALSE(read_pid(text, read)) << "'" << text << "'";
  }
}

TEST(OwnerWords, SayWhetherTheOperatorCanUseThePid) {
  auto owner = this_process();
  const auto plain = "pid " + std::to_string(::getpid());
  EXPECT_EQ(pid_words(owner), plain);
  owner.pid_namespace += 1;
  EXPECT_EQ(pid_words(owner), plain + " in another pid namespace");
  owner.pid_namespace = 0;
  EXPECT_EQ(pid_words(owner), plain) << "unknown";
  owner.host += ".elsewhere";
  owner.pid_namespace = 4026531836;
  EXPECT_EQ(pid_words(owner), plain) << "the first namespace of another machine";
  owner.pid_namespace = 4026532000;
  EXPECT_EQ(pid_words(owner), plain + " in another pid namespace") << "a container elsewhere";
}

TEST(OwnerWords, ForOthersNameANamespaceThatIsNotTheFirst) {
  Owner owner;
  owner.pid = 7;
  EXPECT_EQ(pid_words_for_others(owner), "pid 7");
  owner.pid_namespace = 4026531836;
  EXPECT_EQ(pid_words_for_others(owner), "pid 7");
  owner.pid_namespace = 4026532000;
  EXPECT_EQ(pid_words_for_others(owner), "pid 7 in its pid namespace");
  EXPECT_FALSE(has_host_pid(owner));
}

TEST(OwnerWords, OnlyAProcessOfThisHostAndNamespaceRunsHere) {
  auto owner = this_process();
  EXPECT_TRUE(runs_here(owner));
  owner.pid_namespace += 1;
  EXPECT_FALSE(runs_here(owner));
  owner = this_process();
  owner.host += "x";
  EXPECT_FALSE(runs_here(owner));
  owner = this_process();
  owner.pid_namespace = 0;
  EXPECT_FALSE(runs_here(owner)) << "unknown";
}

}  // namespace
}  // namespace dlock

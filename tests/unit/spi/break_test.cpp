// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dlock/lock_status.hpp"

namespace dlock {
namespace {

TEST(BreakText, IsReadAsItWasWritten) {
  Break mark;
  mark.by.host = "web 1,\n%";
  mark.by.pid = 4711;
  mark.by.pid_namespace = 17;
  mark.by.app = "dlock";
  mark.at = std::chrono::milliseconds(1'767'225'600'000);
  mark.reason = "the disk, \"sda\", is full\n";
  const auto text = write_break(mark);
  EXPECT_EQ(text.find_first_of(" \n"), std::string::npos) << "the records of stores are lines";
  const auto read = read_break(text);
  EXPECT_EQ(read.by.host, mark.by.host);
  EXPECT_EQ(read.by.pid, mark.by.pid);
  EXPECT_EQ(read.by.pid_namespace, mark.by.pid_namespace);
  EXPECT_EQ(read.by.app, mark.by.app);
  EXPECT_EQ(read.at, mark.at);
  EXPECT_EQ(read.reason, mark.reason);
}

TEST(BreakText, TextInAnotherFormatIsTheReason) {
  for (const char* text :
       {"", "by hand", "a,b", "host,1,app,1,why", "v=1,host,x,app,1,why", "v=1,host,1,app,,why"}) {
    const auto read = read_break(text);
    EXPECT_EQ(read.reason, text);
    EXPECT_TRUE(read.by.host.empty()) << text;
  }
}

TEST(BreakText, ANewerFormatIsNamed) {
  const auto read = read_break("v=2,what,ever");
  EXPECT_EQ(read.reason,
            "the mark of the break has format 2; this program reads format 1; upgrade it");
  EXPECT_TRUE(read.by.host.empty());
}

TEST(BreakText, WordsNameTheBreakerAndTheReason) {
  Break mark;
  EXPECT_EQ(break_words(mark), "");
  mark.reason = "stuck";
  EXPECT_EQ(break_words(mark), "stuck");
  mark.by.host = "web1";
  mark.by.pid = 7;
  mark.by.app = "dlock";
  EXPECT_EQ(break_words(mark), "dlock (pid 7) on web1: stuck");
}

}  // namespace
}  // namespace dlock

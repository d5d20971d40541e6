// SPDX-License-Identifier: Apache-2.0
//
// What is said of servers that cannot be reached.
#include <gtest/gtest.h>

#include "backends/zookeeper/wire/tried.hpp"

namespace dlock::zookeeper {
namespace {

TEST(Tried, SaysOfEachServerWhatBecameOfIt) {
  Tried tried;
  EXPECT_EQ(tried.text("a:1,b:2", false), "a:1, b:2");
  tried.failed(false);
  EXPECT_EQ(tried.text("a:1", false), "a:1 refused the connection");
  tried.reached("b:2");
  EXPECT_EQ(tried.text("b:2", true),
            "b:2 accepts the connection and does not answer: is it a ZooKeeper server?")
      << "so far";
  tried.failed(false);
  tried.reached("c:3");
  tried.answered_wrongly();
  tried.failed(false);
  tried.reached("d:4");
  tried.left();
  tried.failed(false);
  EXPECT_EQ(tried.text("a:1,b:2,c:3,d:4", false),
            "a:1 refused the connection, b:2 hung up (as a server does that has all the clients of "
            "its maxClientCnxns), c:3 answers, but is not a ZooKeeper server, d:4 accepts the "
            "connection and does not answer: is it a ZooKeeper server?");
  tried.clear();
  EXPECT_EQ(tried.text("b:2", false), "b:2");
}

TEST(Tried, ClaimsNoMoreThanIsKnownOfThoseItNeverReached) {
  Tried tried;
  tried.failed(false);
  tried.failed(true);
  EXPECT_EQ(tried.text("a:1,b:2", false),
            "a:1 refused the connection or does not answer, b:2 refused the connection or does not "
            "answer");
}

}  // namespace
}  // namespace dlock::zookeeper

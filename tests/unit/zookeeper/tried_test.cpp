// SPDX-License-Identifier: Apache-2.0
//
// The text about servers that cannot be reached, and addresses as text.
#include <gtest/gtest.h>

#include "backends/zookeeper/wire/address.hpp"
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

TEST(ZooKeeperAddress, IsAnIpAndAPort) {
  for (const char* address : {"127.0.0.1:1", "127.0.0.1:65535", "::1:2181"}) {
    const auto endpoint = endpoint_of(address);
    ASSERT_TRUE(endpoint) << address;
    EXPECT_EQ(text_of(*endpoint), address);
  }
  EXPECT_EQ(endpoint_of("::1:2181")->port(), 2181);
  for (const char* wrong :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:x", "host:1"}) {
    EXPECT_FALSE(endpoint_of(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace dlock::zookeeper

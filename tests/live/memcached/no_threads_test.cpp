// SPDX-License-Identifier: Apache-2.0
//
// The Memcached store while the system has no thread to give: an error from the call that says so,
// and all works again when there are threads.
#include <gmock/gmock.h>

#include "testkit/await.hpp"
#include "testkit/no_threads.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

TEST(MemcachedNoThreads, ACallSaysSoAndTheNextOneWorks) {
  MemcachedServer server;
  server.start();
  // A name has to be looked up, which blocks; an address needs no thread.
  auto locks = open_memcached(fmt::format(
      "memcached://localhost:{}?connect_timeout=500ms&request_timeout=500ms", server.port()));
  // The manager's own thread, if it makes one for its first call.
  EXPECT_NO_THROW(static_cast<void>(locks.lock("x")));
  {
    const NoThreads none;
    Diagnostics diagnostics;
    error_code ec;
    const auto start = Clock::now();
    try {
      (void)locks.lock("x")->acquire({.wait = 1s, .diagnostics = &diagnostics}, {}, ec);
    } catch (const LockError& error) {
      ec = error.code();
      diagnostics.server_text = error.what();
    }
    EXPECT_EQ(ec, errc::unavailable) << ec.message();
    EXPECT_THAT(diagnostics.server_text, HasSubstr("RLIMIT_NPROC"));
    EXPECT_LT(Clock::now() - start, 10s);
  }
  auto held = locks.lock("x")->acquire({.wait = 30s});
  EXPECT_FALSE(held.release());
}

TEST(MemcachedNoThreads, ACloseWithoutAThreadIsOverSoon) {
  MemcachedServer server;
  server.start();
  auto locks = open_memcached(fmt::format(
      "memcached://localhost:{}?connect_timeout=500ms&request_timeout=500ms", server.port()));
  const NoThreads none;
  error_code ec;
  try {
    (void)locks.lock("x")->acquire({.wait = 500ms}, {}, ec);
  } catch (const LockError& error) {
    ec = error.code();
  }
  EXPECT_TRUE(ec);
  const auto start = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - start, 6s);
}

}  // namespace
}  // namespace dlock::testkit

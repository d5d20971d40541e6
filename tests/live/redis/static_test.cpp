// SPDX-License-Identifier: Apache-2.0
//
// The end of a process whose manager and handle are destroyed after main(): in the order of static
// storage, and whatever the server does meanwhile.
#include <gtest/gtest.h>

#include <memory>

#include "testkit/process.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

std::unique_ptr<Process> holder(const std::string& url) {
  ProcessOptions options;
  options.argv = {DLOCK_REDIS_STATIC, url, "x"};
  auto process = std::make_unique<Process>(std::move(options));
  EXPECT_EQ(process->read_line(patience()), "held") << process->collected_stderr();
  return process;
}

/// It returns from main(), and ends well and soon.
void expect_a_good_end(Process& process, std::chrono::seconds bound) {
  const auto start = Clock::now();
  process.close_stdin();
  const auto status = process.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->shell_status() << process.collected_stderr();
  EXPECT_LT(Clock::now() - start, bound);
}

class RedisStatic : public RedisTest {};

TEST_F(RedisStatic, GivesTheLockBack) {
  const auto process = holder(redis_url(server_.port()));
  expect_a_good_end(*process, 2s);
  EXPECT_EQ(exists("dlock:{x}"), 0);
}

TEST_F(RedisStatic, GivesTheLockBackOverTls) {
  const Certificates certificates;
  RedisTlsServer tls(certificates, "server");
  const auto process = holder(tls.url("?tls_ca=" + certificates.file("ca.crt")));
  expect_a_good_end(*process, 2s);
  EXPECT_EQ(RedisClient(tls.server.port()).ask({"EXISTS", "dlock:{x}"}).integer, 0);
}

TEST_F(RedisStatic, EndsWhenTheServerHasGone) {
  const auto process = holder(redis_url(server_.port()));
  server_.kill9();
  expect_a_good_end(*process, 8s);
}

// Scripts are loaded and hashed again on the way.
TEST(RedisStaticOnDisk, GivesTheLockBackToAServerThatCameBack) {
  RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  server.start();
  const auto process = holder(redis_url(server.port(), "&lease=60s"));
  server.restart();
  ASSERT_EQ(RedisClient(server.port()).ask({"EXISTS", "dlock:{x}"}).integer, 1);
  expect_a_good_end(*process, 8s);
  EXPECT_EQ(RedisClient(server.port()).ask({"EXISTS", "dlock:{x}"}).integer, 0);
}

}  // namespace
}  // namespace dlock::testkit

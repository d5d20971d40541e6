// SPDX-License-Identifier: Apache-2.0
//
// What the Redis live tests share: managers over this backend alone, a client of another make, and
// recorders of what is told to a holder.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/wire/codec.hpp"
#include "dlock/clock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/redis.hpp"
#include "testkit/await.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/sockets.hpp"
#include "tests/support/state_log.hpp"
#include "tests/support/waiters.hpp"

namespace dlock::testkit {

using namespace std::chrono_literals;

/// A manager over one store; its warnings go to `warnings`, if given, and fail no test.
class WarningLog {
 public:
  void add(std::string_view text);
  std::string all() const;
  bool has(std::string_view text) const { return all().find(text) != std::string::npos; }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};
LockManager open_redis(const std::string& url, std::shared_ptr<WarningLog> warnings = {});

inline std::string redis_url(std::uint16_t port, std::string_view rest = {}) {
  return "redis://127.0.0.1:" + std::to_string(port) + "/0?release_timeout=2s" + std::string(rest);
}

/// A bare connection: any command, one at a time.
class RedisClient {
 public:
  explicit RedisClient(std::uint16_t port);
  /// Fails the test when the server does not answer.
  redis::Reply ask(const redis::Command& command, Deadline deadline = patience());
  /// Sends without waiting (MONITOR, SUBSCRIBE).
  void send(const redis::Command& command);
  std::optional<redis::Reply> next(Deadline deadline);
  /// A line of INFO.
  std::string info(const std::string& section, const std::string& key);
  /// How often a command was called by clients (those inside scripts not counted: EVALSHA is).
  long calls(const std::string& command);

 private:
  TcpStream stream_;
  redis::ReplyReader reader_;
};

/// A server of its own, plain by default.
class RedisTest : public testing::Test {
 protected:
  explicit RedisTest(std::vector<std::string> options = {}) : server_(std::move(options)) {}
  void SetUp() override { server_.start(); }
  LockManager open(std::string_view rest = {}) {
    return open_redis(redis_url(server_.port(), rest));
  }
  RedisClient& client() {
    if (!client_) client_.emplace(server_.port());
    return *client_;
  }
  /// Before its first lock on a server a manager tests it. That is over when this returns.
  static void pass_self_test(LockManager& locks) {
    EXPECT_FALSE(locks.lock("first")->acquire({.wait = 20s}).release());
  }
  std::int64_t exists(const std::string& key) { return client().ask({"EXISTS", key}).integer; }

  RedisServer server_;
  std::optional<RedisClient> client_;
};

/// An authority `ca`, what it has signed for 127.0.0.1, `localhost` and `locks.test`, and others.
class Certificates {
 public:
  /// With `server`.
  Certificates();
  void make_authority(const std::string& name);
  void make(const std::string& name, bool expired = false);
  /// `ca.crt`, `server.key`, ...
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  void openssl(const std::vector<std::string>& arguments);

  TempDir folder_{"dlock-redis-tls"};
};

/// TLS on a port of its own beside the plain one. Runs.
struct RedisTlsServer {
  RedisTlsServer(const Certificates& certificates, const std::string& certificate,
                 const std::string& clients = "no");
  /// `rest` begins with `?`, if there is any.
  std::string url(const std::string& rest, const std::string& host = "127.0.0.1") const;

  Port port;
  RedisServer server;
};

}  // namespace dlock::testkit

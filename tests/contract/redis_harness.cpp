// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "dlock/contract/harness.hpp"
#include "testkit/servers/redis.hpp"

namespace dlock::contract {
namespace {

/// Room for a busy machine under a sanitizer: a renewal is due each third of it.
constexpr std::chrono::milliseconds kRedisLease{5000};

/// As `require: exclusive` wants them.
const std::vector<std::string> kSettings{"--databases", "1000",          "--appendonly",
                                         "yes",         "--appendfsync", "always"};

class RedisHarness final : public Harness {
 public:
  // A database for each test: nothing in one is seen in another.
  bool tells_holders() const override { return true; }
  std::string fresh_url() override {
    if (!server_) server_.emplace(kSettings).start();
    return "redis://127.0.0.1:" + std::to_string(server_->port()) + "/" + std::to_string(++last_) +
           "?lease=" + std::to_string(kRedisLease.count()) + "ms";
  }
  bool has_link() const override { return true; }
  std::uint16_t port() const override { return server_->port(); }
  void restart_server() override { server_->restart(); }
  // The first waiters look when the lease is over.
  std::chrono::milliseconds dead_holder_bound() const override { return kRedisLease; }
  std::chrono::milliseconds dead_waiter_bound() const override { return std::chrono::seconds(2); }

 private:
  std::optional<testkit::RedisServer> server_;
  int last_ = 0;
};

}  // namespace

Harness& redis_harness() {
  static RedisHarness harness;
  return harness;
}

}  // namespace dlock::contract

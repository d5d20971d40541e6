// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "dlock/contract/harness.hpp"
#include "testkit/servers/zookeeper.hpp"

namespace dlock::contract {
namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::milliseconds kSession{5000};

class ZooKeeperHarness final : public Harness {
 public:
  bool tells_holders() const override { return true; }
  std::string fresh_url() override {
    if (!server_) {
      testkit::ZooKeeperOptions options;
      options.tick = kTick;
      server_.emplace(options).start();
    }
    return server_->url() + "contract-" + std::to_string(++last_) +
           "?session_timeout=" + std::to_string(kSession.count()) + "ms";
  }
  bool has_link() const override { return true; }
  std::uint16_t port() const override { return server_->port(); }
  void restart_server() override { server_->restart(); }
  // The server looks for dead sessions once a tick.
  std::chrono::milliseconds dead_holder_bound() const override { return kSession + kTick; }

 private:
  std::optional<testkit::ZooKeeperServer> server_;
  int last_ = 0;
};

}  // namespace

Harness& zookeeper_harness() {
  static ZooKeeperHarness harness;
  return harness;
}

}  // namespace dlock::contract

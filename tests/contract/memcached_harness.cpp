// SPDX-License-Identifier: Apache-2.0
//
// One server for all tests, a key prefix for each. The server keeps no places for waiters; it tells
// a watcher of each `add` that came too late, which is how a waiter begins.
#include <optional>
#include <string>

#include "dlock/contract/harness.hpp"
#include "testkit/servers/memcached.hpp"
#include "tests/support/memcached_watch.hpp"

namespace dlock::contract {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMemcachedLease{3000};

class MemcachedHarness final : public Harness {
 public:
  std::string fresh_url() override {
    if (!server_) server_.emplace().start();
    prefix_ = "contract-" + std::to_string(++last_) + "-";
    watch_.emplace(server_->port());
    refused_.clear();
    return server_->url() + "?lease=" + std::to_string(kMemcachedLease.count()) +
           "ms&key=" + prefix_ + "%7Bname%7D";
  }
  bool has_link() const override { return true; }
  std::uint16_t port() const override { return server_->port(); }
  void restart_server() override { server_->restart(); }
  // The server counts whole seconds: a lease is asked for with one more.
  milliseconds dead_holder_bound() const override { return kMemcachedLease + milliseconds(1000); }
  bool shows_waiters() const override { return false; }
  bool tells_breaks() const override { return false; }

  std::size_t asked_in_vain(const std::string& name) override {
    watch_->read([this](std::string_view line) {
      if (line.find(" status=not_stored cmd=add ") != line.npos) refused_.append(line);
    });
    const auto key = testkit::MemcachedWatch::of_key(prefix_ + name);
    std::size_t count = 0;
    for (auto at = refused_.find(key); at != refused_.npos; at = refused_.find(key, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  std::optional<testkit::MemcachedServer> server_;
  std::optional<testkit::MemcachedWatch> watch_;
  std::string refused_;  ///< the server's lines of this test
  std::string prefix_;
  int last_ = 0;
};

}  // namespace

Harness& memcached_harness() {
  static MemcachedHarness harness;
  return harness;
}

}  // namespace dlock::contract

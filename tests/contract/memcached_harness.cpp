// SPDX-License-Identifier: Apache-2.0
//
// One server for all tests, a key prefix for each. The server keeps no places for waiters; it tells
// a watcher of each `add` that came too late, which is how a waiter begins.
#include <cctype>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/name.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/sockets.hpp"
#include "tests/contract/harness.hpp"

namespace dlock::contract {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLease{3000};

/// As the watched server spells keys.
std::string spelled(std::string_view key) {
  return core::percent_escape(key, [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '-' || byte == '.' || byte == '_' || byte == '~';
  });
}

/// Counts, by key, the adds that found the key taken.
class Watcher {
 public:
  explicit Watcher(std::uint16_t port) : stream_(testkit::TcpStream::connect(port)) {
    if (!stream_ || !stream_->send("watch mutations\r\n") ||
        stream_->receive(4) != std::string("OK\r\n")) {
      throw std::runtime_error("memcached does not let itself be watched");
    }
  }

  std::size_t refused_adds(const std::string& key) {
    read();
    return refused_[spelled(key)];
  }

 private:
  void read() {
    for (auto some = stream_->receive_some(testkit::within(milliseconds(0))); !some.empty();
         some = stream_->receive_some(testkit::within(milliseconds(0)))) {
      unread_ += some;
    }
    auto end = unread_.find('\n');
    for (; end != std::string::npos; end = unread_.find('\n')) {
      take(unread_.substr(0, end));
      unread_.erase(0, end + 1);
    }
  }

  void take(const std::string& line) {
    if (line.find(" status=not_stored cmd=add ") == std::string::npos) return;
    constexpr std::string_view kKey = " key=";
    const auto start = line.find(kKey) + kKey.size();
    ++refused_[line.substr(start, line.find(' ', start) - start)];
  }

  std::optional<testkit::TcpStream> stream_;
  std::string unread_;
  std::map<std::string, std::size_t> refused_;
};

class MemcachedHarness final : public Harness {
 public:
  std::string fresh_url() override {
    if (!server_) server_.emplace().start();
    prefix_ = "contract-" + std::to_string(++last_) + "-";
    watcher_.emplace(server_->port());
    return server_->url() + "?lease=" + std::to_string(kLease.count()) + "ms&key=" + prefix_ +
           "%7Bname%7D";
  }
  // The server counts whole seconds: a lease is asked for with one more.
  milliseconds dead_holder_bound() const override { return kLease + milliseconds(1000); }
  bool shows_waiters() const override { return false; }
  std::size_t asked_in_vain(const std::string& name) override {
    return watcher_->refused_adds(prefix_ + name);
  }

 private:
  std::optional<testkit::MemcachedServer> server_;
  std::optional<Watcher> watcher_;
  std::string prefix_;
  int last_ = 0;
};

}  // namespace

Harness& memcached_harness() {
  static MemcachedHarness harness;
  return harness;
}

}  // namespace dlock::contract

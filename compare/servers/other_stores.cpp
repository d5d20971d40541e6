// SPDX-License-Identifier: Apache-2.0
//
// ZooKeeper, alone and as an ensemble, and Memcached.
#include <fmt/format.h>

#include <stdexcept>

#include "compare/servers/store.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/sockets.hpp"

namespace dlock::compare {

namespace {

using testkit::patience;
using testkit::within;

std::chrono::milliseconds session_timeout(Pace pace) {
  return std::chrono::milliseconds(pace == Pace::working ? 10'000 : 2'000);
}

// The floor's sessions say nothing while others are measured.
testkit::ZooKeeperOptions server_options() {
  return {.max_session_timeout = std::chrono::minutes(1), .fsync = true};
}

std::string version_of(const testkit::ZooKeeperServer& server) {
  const auto answer = server.four_letter("srvr");
  const std::string_view label = "Zookeeper version: ";
  const auto at = answer.find(label);
  if (at == std::string::npos) return "unknown";
  const auto begin = at + label.size();
  return "ZooKeeper " + answer.substr(begin, answer.find_first_of("-,", begin) - begin);
}

std::uint64_t received(const testkit::ZooKeeperServer& server) {
  return detail::number_behind(server.four_letter("srvr"), "Received: ").value_or(0);
}

std::string url_of(std::string_view hosts, std::chrono::milliseconds timeout) {
  return fmt::format("zookeeper://{}/dlock?session_timeout={}ms", hosts, timeout.count());
}

class ZooKeeperStore : public Store {
 public:
  ZooKeeperStore(const StoreKind& kind, Pace pace) : Store(kind), lease_(session_timeout(pace)) {}
  void start() override { server_.start(); }
  std::string url() const override { return url_through(server_.port()); }
  std::string url_through(std::uint16_t proxy_port) const override {
    return url_of(fmt::format("127.0.0.1:{}", proxy_port), lease_);
  }
  std::uint16_t port() const override { return server_.port(); }
  std::chrono::milliseconds lease() const override { return lease_; }
  std::string version() override { return version_of(server_); }
  std::vector<std::string> faults() const override { return {"kill_server", "start_server"}; }
  void apply(std::string_view fault) override {
    if (fault == "kill_server") return server_.kill9();
    if (fault == "start_server") return server_.start();
    Store::apply(fault);
  }
  std::optional<std::uint64_t> operations() override { return received(server_); }
  std::vector<int> pids() const override { return {server_.pid()}; }

 private:
  std::chrono::milliseconds lease_;
  testkit::ZooKeeperServer server_{server_options()};
};

class EnsembleStore : public Store {
 public:
  EnsembleStore(const StoreKind& kind, Pace pace) : Store(kind), lease_(session_timeout(pace)) {}
  void start() override { ensemble_.start(); }
  std::string url() const override {
    std::string hosts;
    for (std::size_t i = 0; i < testkit::ZooKeeperEnsemble::size; ++i) {
      hosts += fmt::format("{}127.0.0.1:{}", i == 0 ? "" : ",", server(i).port());
    }
    return url_of(hosts, lease_);
  }
  std::string url_through(std::uint16_t proxy_port) const override {
    return url_of(fmt::format("127.0.0.1:{}", proxy_port), lease_);
  }
  std::uint16_t port() const override { return server(0).port(); }
  std::chrono::milliseconds lease() const override { return lease_; }
  std::string version() override { return version_of(server(0)); }
  std::vector<std::string> faults() const override {
    return {"kill_leader", "start_killed", "cut_leader", "mend_leader"};
  }
  void apply(std::string_view fault) override {
    if (fault == "kill_leader" || fault == "cut_leader") {
      struck_ = ensemble_.wait_for_leader(patience());
      if (!struck_) throw std::runtime_error("the ensemble has no leader");
      if (fault == "cut_leader") return ensemble_.isolate(*struck_);
      return ensemble_.server(*struck_).kill9();
    }
    if (fault == "start_killed" && struck_) return ensemble_.server(*struck_).start();
    if (fault == "mend_leader") return ensemble_.heal();
    Store::apply(fault);
  }
  std::optional<std::uint64_t> operations() override {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < testkit::ZooKeeperEnsemble::size; ++i) all += received(server(i));
    return all;
  }
  std::vector<int> pids() const override {
    std::vector<int> all;
    for (std::size_t i = 0; i < testkit::ZooKeeperEnsemble::size; ++i) {
      all.push_back(server(i).pid());
    }
    return all;
  }

 private:
  testkit::ZooKeeperServer& server(std::size_t index) const { return ensemble_.server(index); }

  std::chrono::milliseconds lease_;
  mutable testkit::ZooKeeperEnsemble ensemble_{server_options()};
  std::optional<std::size_t> struck_;
};

class MemcachedStore : public Store {
 public:
  MemcachedStore(const StoreKind& kind, Pace pace, std::string_view flavour)
      : Store(kind),
        lease_(pace == Pace::working ? 30'000 : 3'000),
        evicting_(flavour == "evicting"),
        server_(evicting_ ? std::vector<std::string>{"-m", "1", "-I", "512k"}
                          : std::vector<std::string>{"-M", "-c", "4096"}) {}

  void start() override { server_.start(); }
  std::string url() const override { return url_through(server_.port()); }
  std::string url_through(std::uint16_t proxy_port) const override {
    return fmt::format("memcached://127.0.0.1:{}?lease={}ms", proxy_port, lease_.count());
  }
  std::uint16_t port() const override { return server_.port(); }
  std::chrono::milliseconds lease() const override { return lease_; }
  std::string version() override {
    const auto answer = testkit::ask(port(), "version\r\n", "\n", within(std::chrono::seconds(5)));
    return answer.size() > 8 ? "memcached " + answer.substr(8, answer.find('\r') - 8) : "unknown";
  }
  std::vector<std::string> faults() const override {
    std::vector<std::string> all{"kill_server", "start_server", "flush"};
    if (evicting_) all.emplace_back("evict");
    return all;
  }
  void apply(std::string_view fault) override {
    if (fault == "kill_server") return server_.kill9();
    if (fault == "start_server") return server_.start();
    if (fault == "flush") {
      testkit::ask(port(), "flush_all\r\n", "\n", within(std::chrono::seconds(5)));
      return;
    }
    if (fault == "evict") return fill();
    Store::apply(fault);
  }
  std::optional<std::uint64_t> operations() override {
    const auto stats =
        testkit::ask(port(), "stats\r\n", "END\r\n", within(std::chrono::seconds(5)));
    std::uint64_t all = 0;
    for (const auto* name : {"cmd_get ", "cmd_set ", "incr_hits ", "incr_misses ", "delete_hits ",
                             "delete_misses ", "touch_hits "}) {
      all += detail::number_behind(stats, name).value_or(0);
    }
    return all;
  }
  std::vector<int> pids() const override { return {server_.pid()}; }

 private:
  /// Values of every size that a lock's may have: memory is short per size class.
  void fill() {
    auto stream = testkit::TcpStream::connect(port());
    if (!stream) throw std::runtime_error("cannot reach memcached");
    for (int i = 0; i < 3000; ++i) {
      std::string batch;
      for (std::size_t size = 1; size <= 220; size += 5) {
        batch += fmt::format("set junk:{}:{} 0 0 {} noreply\r\n{}\r\n", i, size, size,
                             std::string(size, 'x'));
      }
      batch += "version\r\n";
      stream->send(batch);
      if (stream->receive_some(within(std::chrono::seconds(5))).empty()) {
        throw std::runtime_error("memcached does not answer while it is being filled");
      }
    }
  }

  std::chrono::milliseconds lease_;
  bool evicting_;
  testkit::MemcachedServer server_;
};

}  // namespace

std::unique_ptr<Store> detail::make_zookeeper(const StoreKind& kind, Pace pace, std::string_view) {
  if (kind.id == "zookeeper3") return std::make_unique<EnsembleStore>(kind, pace);
  return std::make_unique<ZooKeeperStore>(kind, pace);
}

std::unique_ptr<Store> detail::make_memcached(const StoreKind& kind, Pace pace,
                                              std::string_view flavour) {
  return std::make_unique<MemcachedStore>(kind, pace, flavour);
}

}  // namespace dlock::compare

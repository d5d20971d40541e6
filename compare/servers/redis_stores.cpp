// SPDX-License-Identifier: Apache-2.0
//
// Redis: one server, as installed or durable; and a primary with a replica and a Sentinel.
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "compare/embedded.hpp"
#include "compare/servers/store.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/sockets.hpp"
#include "testkit/temp_dir.hpp"
#include "testkit/wall_clock.hpp"

namespace dlock::compare {

namespace {

using testkit::patience;
using testkit::within;

std::string inline_command(std::uint16_t port, std::string_view command, std::string_view enough) {
  return testkit::ask(port, fmt::format("{}\r\n", command), enough,
                      within(std::chrono::seconds(5)));
}

/// Sets of as many sizes as lock values have, until the server has thrown something out.
void fill_redis(std::uint16_t port) {
  auto stream = testkit::TcpStream::connect(port);
  if (!stream) throw std::runtime_error("cannot reach redis");
  for (int i = 0; i < 400; ++i) {
    std::string batch;
    for (int k = 0; k < 100; ++k) {
      batch += fmt::format("SET junk:{}:{} {:x>120}\r\n", i, k, "");
    }
    stream->send(batch);
    std::size_t answered = 0;
    while (answered < 100 * std::string_view("+OK\r\n").size()) {
      const auto more = stream->receive_some(within(std::chrono::seconds(5)));
      if (more.empty()) throw std::runtime_error("redis does not answer while it is being filled");
      answered += more.size();
    }
  }
}

/// redis-server with a wall clock that can be stepped.
class ClockedRedis : public testkit::RedisServer {
 public:
  explicit ClockedRedis(std::vector<std::string> options)
      : RedisServer(std::move(options)), clock_(shim().string(), folder() / "clock") {
    testkit::write_file(shim(), embedded("clock_shim.so"));
  }
  void step(std::chrono::seconds by) { clock_.be_wrong_by(by); }

 protected:
  std::vector<std::string> command() override { return clock_.with_it(RedisServer::command()); }

 private:
  std::filesystem::path shim() const { return folder() / "clock_shim.so"; }

  testkit::WallClock clock_;
};

std::vector<std::string> options_of(std::string_view id, std::string_view flavour) {
  if (flavour == "evicting") {
    return {"--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "10"};
  }
  if (id == "redis-durable") return {"--appendonly", "yes", "--appendfsync", "always"};
  return {};
}

class RedisStore : public Store {
 public:
  RedisStore(const StoreKind& kind, Pace pace, std::string_view flavour)
      : Store(kind), lease_(pace == Pace::working ? 30'000 : 2'000), flavour_(flavour) {
    if (flavour == "clock") {
      auto clocked = std::make_unique<ClockedRedis>(options_of(kind.id, flavour));
      clocked_ = clocked.get();
      server_ = std::move(clocked);
    } else {
      server_ = std::make_unique<testkit::RedisServer>(options_of(kind.id, flavour));
    }
  }

  void start() override { server_->start(); }
  std::string url() const override { return url_through(server_->port()); }
  std::string url_through(std::uint16_t proxy_port) const override {
    return fmt::format("redis://127.0.0.1:{}/0?lease={}ms", proxy_port, lease_.count());
  }
  std::uint16_t port() const override { return server_->port(); }
  std::chrono::milliseconds lease() const override { return lease_; }
  std::string version() override {
    const auto info = inline_command(port(), "INFO server", "redis_mode");
    const auto at = info.find("redis_version:");
    return at == std::string::npos ? "unknown"
                                   : "Redis " + info.substr(at + 14, info.find('\r', at) - at - 14);
  }

  std::vector<std::string> faults() const override {
    std::vector<std::string> all{"kill_server", "start_server", "flush"};
    if (flavour_ == "evicting") all.emplace_back("evict");
    if (clocked_ != nullptr) all.emplace_back("step_clock");
    return all;
  }
  void apply(std::string_view fault) override {
    if (fault == "kill_server") return server_->kill9();
    if (fault == "start_server") return server_->start();
    if (fault == "flush") return static_cast<void>(inline_command(port(), "FLUSHALL", "\n"));
    if (fault == "evict") return fill_redis(port());
    if (fault == "step_clock" && clocked_ != nullptr) return clocked_->step(std::chrono::hours(1));
    Store::apply(fault);
  }

  std::optional<std::uint64_t> operations() override {
    return detail::number_behind(inline_command(port(), "INFO stats", "instantaneous_ops_per_sec"),
                                 "total_commands_processed:");
  }
  std::vector<int> pids() const override { return {server_->pid()}; }

 private:
  std::chrono::milliseconds lease_;
  std::string flavour_;
  std::unique_ptr<testkit::RedisServer> server_;
  ClockedRedis* clocked_ = nullptr;
};

/// Sentinel rewrites its configuration file, so it has to have one.
class Sentinel : public testkit::RedisServer {
 public:
  explicit Sentinel(std::uint16_t primary) : RedisServer(), primary_(primary) {}

 protected:
  std::vector<std::string> command() override {
    const auto file = folder() / "sentinel.conf";
    testkit::write_file(file, fmt::format("port {}\nbind 127.0.0.1\ndir {}\n"
                                          "sentinel monitor locks 127.0.0.1 {} 1\n"
                                          "sentinel down-after-milliseconds locks 1000\n"
                                          "sentinel failover-timeout locks 3000\n",
                                          port(), folder().string(), primary_));
    return {testkit::find_server_program("redis-server", "redis-server").string(), file.string(),
            "--sentinel"};
  }

 private:
  std::uint16_t primary_;
};

class SentinelStore : public Store {
 public:
  SentinelStore(const StoreKind& kind, Pace pace)
      : Store(kind), lease_(pace == Pace::working ? 30'000 : 2'000) {}

  void start() override {
    primary_.start();
    replication_ = std::make_unique<testkit::FaultProxy>(primary_.port());
    replica_ = std::make_unique<testkit::RedisServer>(
        std::vector<std::string>{"--replicaof", "127.0.0.1", std::to_string(replication_->port()),
                                 "--repl-diskless-sync-delay", "0"});
    replica_->start();
    address_ = std::make_unique<testkit::FaultProxy>(primary_.port());
    sentinel_ = std::make_unique<Sentinel>(primary_.port());
    sentinel_->start();
    const bool known = testkit::eventually(patience(), [this] {
      const auto info = inline_command(primary_.port(), "INFO replication", "repl_backlog_histlen");
      const auto seen = inline_command(sentinel_->port(), "INFO sentinel", "sentinels=");
      return info.find("state=online") != std::string::npos &&
             seen.find("slaves=1") != std::string::npos;
    });
    if (!known) throw std::runtime_error("the Sentinel does not know the replica");
  }
  std::string url() const override { return url_through(address_->port()); }
  std::string url_through(std::uint16_t proxy_port) const override {
    return fmt::format("redis://127.0.0.1:{}/0?lease={}ms", proxy_port, lease_.count());
  }
  std::uint16_t port() const override { return address_->port(); }
  std::chrono::milliseconds lease() const override { return lease_; }
  std::string version() override { return "Redis with Sentinel"; }

  std::vector<std::string> faults() const override { return {"lag", "failover"}; }
  void apply(std::string_view fault) override {
    if (fault == "lag") return replication_->hold(testkit::Direction::to_client, true);
    if (fault == "failover") return fail_over();
    Store::apply(fault);
  }
  std::optional<std::uint64_t> operations() override {
    return detail::number_behind(
        inline_command(primary_.port(), "INFO stats", "instantaneous_ops_per_sec"),
        "total_commands_processed:");
  }
  std::vector<int> pids() const override { return {primary_.pid()}; }

 private:
  /// The primary dies, the Sentinel promotes the replica, the address moves there.
  void fail_over() {
    primary_.kill9();
    const bool promoted = testkit::eventually(patience(), [this] {
      return inline_command(replica_->port(), "INFO replication", "connected_slaves")
                 .find("role:master") != std::string::npos;
    });
    if (!promoted) throw std::runtime_error("the Sentinel promoted nobody");
    address_->lead_to(replica_->port());
    address_->drop_all();
  }

  std::chrono::milliseconds lease_;
  testkit::RedisServer primary_;
  std::unique_ptr<testkit::FaultProxy> replication_;
  std::unique_ptr<testkit::RedisServer> replica_;
  std::unique_ptr<testkit::FaultProxy> address_;
  std::unique_ptr<Sentinel> sentinel_;
};

}  // namespace

std::unique_ptr<Store> detail::make_redis(const StoreKind& kind, Pace pace,
                                          std::string_view flavour) {
  if (kind.id == "redis-sentinel") return std::make_unique<SentinelStore>(kind, pace);
  return std::make_unique<RedisStore>(kind, pace, flavour);
}

}  // namespace dlock::compare

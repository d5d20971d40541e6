// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/store.hpp"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>

#include "testkit/fault_proxy.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::soak {
namespace {

using namespace std::chrono_literals;
using testkit::Direction;
using testkit::FaultProxy;
using testkit::patience;
using testkit::Verdict;

class LocalStore final : public SoakStore {
 public:
  std::string url(std::size_t) const override { return direct_url(); }
  std::string direct_url() const override { return "file://" + (folder_ / "locks").string(); }
  std::chrono::milliseconds lease() const override { return 1s; }
  std::chrono::milliseconds progress_bound() const override { return 10s; }

 private:
  testkit::TempDir folder_{"dlock-soak"};
};

/// The links of all workers: some to each server. A fault of a link strikes one worker, or all.
class Links {
 public:
  Links(const std::vector<std::uint16_t>& servers, std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      ways_.emplace_back();
      for (const auto port : servers) ways_.back().push_back(std::make_unique<FaultProxy>(port));
    }
  }
  std::vector<std::uint16_t> ports(std::size_t worker) const {
    std::vector<std::uint16_t> ports;
    for (const auto& proxy : ways_.at(worker)) ports.push_back(proxy->port());
    return ports;
  }

  std::vector<StoreFault> faults() {
    const auto pick = [this](Dice& dice) { choose(dice); };
    return {
        {"link cut",
         [this, pick](Dice& dice) {
           pick(dice);
           each([](FaultProxy& proxy) {
             proxy.refuse(true);
             proxy.drop_all();
           });
         },
         [this] { each([](FaultProxy& proxy) { proxy.refuse(false); }); }, 0.05, 1.5},
        {"link silent",
         [this, pick](Dice& dice) {
           pick(dice);
           each([](FaultProxy& proxy) {
             proxy.hold(Direction::to_server, true);
             proxy.hold(Direction::to_client, true);
           });
         },
         [this] {
           each([](FaultProxy& proxy) {
             proxy.hold(Direction::to_server, false);
             proxy.hold(Direction::to_client, false);
           });
         },
         0.1, 1.5},
        {"reply swallowed",
         [this, pick](Dice& dice) {
           pick(dice);
           each([](FaultProxy& proxy) {
             proxy.on_data([left = std::make_shared<std::atomic<int>>(5)](
                               Direction direction, testkit::ConnectionId, std::string_view) {
               const bool reply = direction == Direction::to_client && (*left)-- > 0;
               return reply ? Verdict::reset : Verdict::forward;
             });
           });
         },
         [this] {
           each([](FaultProxy& proxy) {
             proxy.on_data([](Direction, testkit::ConnectionId, std::string_view) {
               return Verdict::forward;
             });
           });
         },
         0.1, 0.5},
        {"delay",
         [this, pick](Dice& dice) {
           pick(dice);
           const auto by = std::chrono::milliseconds(20 + dice() % 200);
           each([by](FaultProxy& proxy) {
             proxy.delay(Direction::to_server, by);
             proxy.delay(Direction::to_client, by);
           });
         },
         [this] {
           each([](FaultProxy& proxy) {
             proxy.delay(Direction::to_server, 0ms);
             proxy.delay(Direction::to_client, 0ms);
           });
         },
         0.3, 1.0},
    };
  }

 private:
  void choose(Dice& dice) {
    struck_.clear();
    if (dice() % 3 != 0) {
      struck_.push_back(dice() % ways_.size());
      return;
    }
    for (std::size_t i = 0; i < ways_.size(); ++i) struck_.push_back(i);
  }
  void each(const std::function<void(FaultProxy&)>& act) {
    for (const auto worker : struck_) {
      for (const auto& proxy : ways_.at(worker)) act(*proxy);
    }
  }

  std::vector<std::vector<std::unique_ptr<FaultProxy>>> ways_;
  std::vector<std::size_t> struck_;
};

void add(std::vector<StoreFault>& all, std::vector<StoreFault> more) {
  for (auto& one : more) all.push_back(std::move(one));
}

/// One server, stopped and killed as a whole.
template <class Kind>
class OneServerStore : public SoakStore {
 public:
  OneServerStore(std::size_t workers, std::vector<std::string> options)
      : server_(std::move(options)) {
    server_.start();
    links_ = std::make_unique<Links>(std::vector{server_.port()}, workers);
  }
  std::vector<StoreFault> faults() override {
    auto all = links_->faults();
    add(all, {{"server stopped", [this](Dice&) { server_.pause(); }, [this] { server_.resume(); },
               0.1, 1.5},
              {"server killed", [this](Dice&) { server_.kill9(); }, [this] { server_.start(); },
               0.05, 0.5}});
    return all;
  }

 protected:
  std::uint16_t port_of(std::size_t slot) const { return links_->ports(slot).front(); }
  Kind server_;

 private:
  std::unique_ptr<Links> links_;
};

class RedisStore final : public OneServerStore<testkit::RedisServer> {
 public:
  explicit RedisStore(std::size_t workers)
      : OneServerStore(workers, {"--appendonly", "yes", "--appendfsync", "always"}) {}
  std::string url(std::size_t slot) const override { return at(port_of(slot)); }
  std::string direct_url() const override { return at(server_.port()); }
  std::chrono::milliseconds lease() const override { return 2s; }
  std::chrono::milliseconds progress_bound() const override { return 20s; }
  // A waiter that does not look any more keeps its place for 20 s, if nobody comes by.
  std::chrono::milliseconds leftover_bound() const override { return 22s; }

 private:
  static std::string at(std::uint16_t port) {
    return fmt::format("redis://127.0.0.1:{}/0?lease=2s&request_timeout=500ms&require=exclusive",
                       port);
  }
};

class MemcachedStore final : public OneServerStore<testkit::MemcachedServer> {
 public:
  explicit MemcachedStore(std::size_t workers) : OneServerStore(workers, {}) {}
  std::string url(std::size_t slot) const override { return at(port_of(slot)); }
  std::string direct_url() const override { return at(server_.port()); }
  std::chrono::milliseconds lease() const override { return 3s; }
  std::chrono::milliseconds progress_bound() const override { return 25s; }
  // server_keeps_its_items, server_clock_not_stopped
  std::vector<std::string> excepted() const override { return {"server killed", "server stopped"}; }

 private:
  static std::string at(std::uint16_t port) {
    return fmt::format("memcached://127.0.0.1:{}?lease=3s&request_timeout=500ms", port);
  }
};

class ZooKeeperStore final : public SoakStore {
 public:
  explicit ZooKeeperStore(std::size_t workers) {
    ensemble_.start();
    std::vector<std::uint16_t> ports;
    for (std::size_t i = 0; i < testkit::ZooKeeperEnsemble::size; ++i) {
      ports.push_back(ensemble_.server(i).port());
    }
    direct_ = at(ports);
    links_ = std::make_unique<Links>(ports, workers);
  }
  std::string url(std::size_t slot) const override { return at(links_->ports(slot)); }
  std::string direct_url() const override { return direct_; }
  std::chrono::milliseconds lease() const override { return 3s; }
  std::chrono::milliseconds progress_bound() const override { return 30s; }

  std::string what_servers_say() override {
    constexpr std::size_t kEnd = 6000;
    std::string all;
    for (std::size_t i = 0; i < testkit::ZooKeeperEnsemble::size; ++i) {
      const auto& server = ensemble_.server(i);
      all += fmt::format("server {} on port {}:\n", i, server.port());
      for (const auto* word : {"srvr", "cons", "dump"}) all += server.four_letter(word);
      const auto log = server.log();
      all += "its log ends with:\n" + log.substr(log.size() - std::min(log.size(), kEnd)) + "\n";
    }
    return all;
  }

  std::vector<StoreFault> faults() override {
    auto all = links_->faults();
    const auto whole = [this] {
      if (!ensemble_.wait_until_whole(patience())) throw std::runtime_error("no leader any more");
    };
    add(all,
        {{"leader killed",
          [this](Dice&) {
            struck_ = ensemble_.leader().value_or(0);
            ensemble_.server(struck_).kill9();
          },
          [this, whole] {
            ensemble_.server(struck_).start();
            whole();
          },
          0.1, 1.0},
         {"follower killed",
          [this](Dice& dice) {
            struck_ = follower(dice);
            ensemble_.server(struck_).kill9();
          },
          [this, whole] {
            ensemble_.server(struck_).start();
            whole();
          }},
         {"server stopped",
          [this](Dice& dice) {
            struck_ = dice() % testkit::ZooKeeperEnsemble::size;
            ensemble_.server(struck_).pause();
          },
          [this, whole] {
            ensemble_.server(struck_).resume();
            whole();
          },
          0.1, 1.5},
         {"leader cut off", [this](Dice&) { ensemble_.isolate(ensemble_.leader().value_or(0)); },
          [this, whole] {
            ensemble_.heal();
            whole();
          },
          0.1, 1.5},
         {"follower cut off", [this](Dice& dice) { ensemble_.isolate(follower(dice)); },
          [this, whole] {
            ensemble_.heal();
            whole();
          },
          0.1, 1.5}});
    return all;
  }

 private:
  static std::string at(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports) {
      hosts += fmt::format("{}127.0.0.1:{}", hosts.empty() ? "" : ",", port);
    }
    return fmt::format("zookeeper://{}/soak?session_timeout=3s&require=exclusive", hosts);
  }
  std::size_t follower(Dice& dice) const {
    const auto all = ensemble_.followers();
    return all.empty() ? 0 : all[dice() % all.size()];
  }

  testkit::ZooKeeperEnsemble ensemble_{{.tick = 500ms}};
  std::string direct_;
  std::unique_ptr<Links> links_;
  std::size_t struck_ = 0;
};

}  // namespace

std::unique_ptr<SoakStore> make_store(const std::string& backend, std::size_t workers) {
  if (backend == "local") return std::make_unique<LocalStore>();
  if (backend == "redis") return std::make_unique<RedisStore>(workers);
  if (backend == "memcached") return std::make_unique<MemcachedStore>(workers);
  if (backend == "zookeeper") return std::make_unique<ZooKeeperStore>(workers);
  throw std::invalid_argument("no soak of a store '" + backend + "'");
}

}  // namespace dlock::soak

// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/support/shared_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kName = "{name}";

std::string in_url(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '/' || c == ':') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::string endpoint_of(std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }

/// The number after `label`, in what the server said.
long number_after(const std::string& text, std::string_view label) {
  const auto at = text.find(label);
  if (at == std::string::npos)
    throw std::runtime_error("no " + std::string(label) + " in: " + text);
  return std::stol(text.substr(at + label.size()));
}

class ZooKeeper : public SharedStore {
 public:
  ZooKeeper() { server_.start(); }
  std::string endpoint() const override { return endpoint_of(server_.port()); }
  std::string url(std::string_view key, milliseconds lease) const override {
    const auto root = key.substr(0, key.size() - kName.size() - 1);
    return fmt::format("zookeeper://{}{}?session_timeout={}ms", endpoint(), root, lease.count());
  }
  // A session ends when the server has not heard of it for its time, as the server granted it, and
  // the server looks once a tick.
  Expiry expiry(const Death& death) override {
    const auto settings = server_.four_letter("conf");
    const auto setting = [&](std::string_view label) {
      return milliseconds(number_after(settings, label));
    };
    const auto session =
        std::clamp(death.lease, setting("minSessionTimeout="), setting("maxSessionTimeout="));
    return {death.alive + session, death.dead + session + setting("tickTime=")};
  }
  bool has_sessions() const override { return true; }
  bool shows_foreign_waiters() const override { return true; }

 private:
  testkit::ZooKeeperServer server_;
};

class Redis : public SharedStore {
 public:
  Redis() { server_.start(); }
  std::string endpoint() const override { return endpoint_of(server_.port()); }
  std::string url(std::string_view key, milliseconds lease) const override {
    return fmt::format("redis://{}/0?key={}&lease={}ms&poll=50ms", endpoint(), in_url(key),
                       lease.count());
  }
  Expiry expiry(const Death& death) override {
    const auto before = Clock::now();
    const auto said =
        testkit::ask(server_.port(), fmt::format("PTTL \"{}\"\r\nQUIT\r\n", death.key), "+OK\r\n",
                     testkit::patience());
    const milliseconds left(number_after(said, ":"));
    if (left < milliseconds(0)) throw std::runtime_error("no lease on " + death.key + ": " + said);
    return {before + left - milliseconds(1), Clock::now() + left + milliseconds(1)};
  }

 private:
  testkit::RedisServer server_;
};

class Memcached : public SharedStore {
 public:
  Memcached() { server_.start(); }
  std::string endpoint() const override { return endpoint_of(server_.port()); }
  std::string url(std::string_view key, milliseconds lease) const override {
    return fmt::format("memcached://{}?key={}&flags=1&lease={}ms", endpoint(), in_url(key),
                       lease.count());
  }
  // Its clock has ticks of a second, and so have its answers.
  Expiry expiry(const Death& death) override {
    const auto before = Clock::now();
    const auto said = testkit::ask(server_.port(), fmt::format("mg {} t\r\n", death.key), "\r\n",
                                   testkit::patience());
    const seconds left(number_after(said, "HD t"));
    return {before + left - seconds(1), Clock::now() + left + seconds(1)};
  }
  bool shows_our_waiters() const override { return false; }

 private:
  testkit::MemcachedServer server_;
};

class MemcachedServers : public SharedStore {
 public:
  explicit MemcachedServers(std::string_view distribution) : distribution_(distribution) {
    for (auto& server : servers_) server.start();
  }
  std::string endpoint() const override {
    return fmt::format("{},{},{}", endpoint_of(servers_[0].port()), endpoint_of(servers_[1].port()),
                       endpoint_of(servers_[2].port()));
  }
  std::string url(std::string_view key, milliseconds lease) const override {
    return fmt::format("memcached://{}?key={}&distribution={}&lease={}ms", endpoint(), in_url(key),
                       distribution_, lease.count());
  }
  Expiry expiry(const Death&) override { throw std::logic_error("no test kills a client here"); }
  bool shows_our_waiters() const override { return false; }

 private:
  const std::string distribution_;
  std::array<testkit::MemcachedServer, 3> servers_;
};

class Folder : public SharedStore {
 public:
  std::string endpoint() const override { return folder_.path().string(); }
  std::string url(std::string_view, milliseconds) const override { return "file://" + endpoint(); }
  Expiry expiry(const Death& death) override { return {death.dead, death.dead}; }

 private:
  testkit::TempDir folder_{"dlock-interop"};
};

}  // namespace

std::unique_ptr<SharedStore> start_zookeeper() { return std::make_unique<ZooKeeper>(); }
std::unique_ptr<SharedStore> start_redis() { return std::make_unique<Redis>(); }
std::unique_ptr<SharedStore> start_memcached() { return std::make_unique<Memcached>(); }
std::unique_ptr<SharedStore> start_memcached_servers(std::string_view distribution) {
  return std::make_unique<MemcachedServers>(distribution);
}
std::unique_ptr<SharedStore> make_folder() { return std::make_unique<Folder>(); }

std::string key_of(std::string_view key, std::string_view name) {
  std::string out(key);
  return out.replace(out.find(kName), kName.size(), name);
}

}  // namespace dlock::interop

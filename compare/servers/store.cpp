// SPDX-License-Identifier: Apache-2.0
#include "compare/servers/store.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "compare/drivers/address.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {

namespace {

class LocalStore : public Store {
 public:
  using Store::Store;
  void start() override {}
  std::string url() const override {
    return fmt::format("file://{}/locks", folder_.path().string());
  }
  std::string url_through(std::uint16_t) const override { return {}; }
  std::uint16_t port() const override { return 0; }
  std::chrono::milliseconds lease() const override { return std::chrono::milliseconds(500); }
  std::string version() override {
    utsname system{};
    ::uname(&system);
    return fmt::format("Linux {}", system.release);
  }

 private:
  testkit::TempDir folder_{"dlock-local"};
};

class UserStore : public Store {
 public:
  UserStore(StoreKind kind, std::string url) : Store(std::move(kind)), url_(std::move(url)) {}
  void start() override {}
  std::string url() const override { return url_; }
  std::string url_through(std::uint16_t) const override { return {}; }
  std::uint16_t port() const override { return 0; }
  std::chrono::milliseconds lease() const override { return std::chrono::seconds(30); }
  std::string version() override { return "not asked"; }

 private:
  std::string url_;
};

}  // namespace

void Store::apply(std::string_view fault) {
  throw std::invalid_argument(fmt::format("{} has no fault '{}'", kind_.id, fault));
}

const std::vector<StoreKind>& store_kinds() {
  static const std::vector<StoreKind> kinds{
      {"local", "Local files", "local", "", "files in a folder; no server"},
      {"zookeeper", "ZooKeeper, one node", "zookeeper", "libzookeeper-java",
       "one server, waits for the disk at each write"},
      {"zookeeper3", "ZooKeeper, three nodes", "zookeeper", "libzookeeper-java",
       "an ensemble on one machine, waits for the disk at each write"},
      {"redis", "Redis as installed", "redis", "redis-server",
       "one server without an append-only file"},
      {"redis-durable", "Redis, durable", "redis", "redis-server",
       "one server, appendonly yes, appendfsync always"},
      {"redis-sentinel", "Redis with a replica", "redis", "redis-server",
       "primary, replica and Sentinel; clients reach the primary by an address that moves"},
      {"memcached", "Memcached", "memcached", "memcached", "one server, -M"},
  };
  return kinds;
}

std::unique_ptr<Store> make_store(std::string_view id, Pace pace, std::string_view flavour) {
  const auto& kinds = store_kinds();
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const StoreKind& one) { return one.id == id; });
  if (kind == kinds.end()) {
    std::string known;
    for (const auto& one : kinds) known += (known.empty() ? "" : ", ") + one.id;
    throw std::invalid_argument(fmt::format("no store '{}'; there are: {}", id, known));
  }
  if (kind->family == "redis") return detail::make_redis(*kind, pace, flavour);
  if (kind->family == "zookeeper") return detail::make_zookeeper(*kind, pace, flavour);
  if (kind->family == "memcached") return detail::make_memcached(*kind, pace, flavour);
  return std::make_unique<LocalStore>(*kind);
}

std::unique_ptr<Store> make_user_store(const std::string& url) {
  const auto address = parse_address(url);
  const std::string family = address.scheme == "file" ? "local" : address.scheme;
  // Never the URL: it may hold a password.
  return std::make_unique<UserStore>(
      StoreKind{"your-" + family, fmt::format("Your {}", family), family, "",
                fmt::format("your own, {}", address.hosts.empty() ? "a folder" : address.hosts)},
      url);
}

std::optional<std::uint64_t> detail::number_behind(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto* begin = text.data() + at + label.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace dlock::compare

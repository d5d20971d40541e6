// SPDX-License-Identifier: Apache-2.0
//
// A store of the comparison: real servers on free loopback ports in folders of their own, gone with
// the object; or the user's own by URL. What can be done to it has names, which the scenarios use.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "testkit/fault_proxy.hpp"

namespace dlock::compare {

/// How leases and servers are set: as an operator would for work, or short, so that a scenario in
/// which a lease runs out does not take a minute.
enum class Pace { working, short_leases };

struct StoreKind {
  std::string id;  ///< as in --stores
  std::string title;
  std::string family;   ///< zookeeper, redis, memcached, local
  std::string package;  ///< what Debian carries it in
  std::string words;    ///< how it is set up
};

/// Not thread-safe; distinct stores are independent.
class Store {
 public:
  explicit Store(StoreKind kind) : kind_(std::move(kind)) {}
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const StoreKind& kind() const { return kind_; }
  /// Throws testkit::MissingPackage, or std::runtime_error with the end of the server's log.
  virtual void start() = 0;
  virtual std::string url() const = 0;
  /// The same store through a proxy; empty where there is no network between (local).
  virtual std::string url_through(std::uint16_t proxy_port) const = 0;
  /// Where such a proxy leads; 0: none.
  virtual std::uint16_t port() const = 0;
  /// How long a dead holder may block the others, as `url` says.
  virtual std::chrono::milliseconds lease() const = 0;
  virtual std::string version() = 0;

  /// What `apply` can do; empty for a user's own store, which is left alone.
  virtual std::vector<std::string> faults() const { return {}; }
  virtual void apply(std::string_view fault);

  /// Requests that the servers have taken so far; nullopt where nobody counts.
  virtual std::optional<std::uint64_t> operations() { return std::nullopt; }
  virtual std::vector<int> pids() const { return {}; }

 private:
  StoreKind kind_;
};

/// All that the suite can start, in the order of the report.
const std::vector<StoreKind>& store_kinds();

/// `flavour` is a setting that a scenario needs: empty, `evicting`, `clock`, `lagging`.
/// Throws std::invalid_argument for an id that there is not.
std::unique_ptr<Store> make_store(std::string_view id, Pace pace, std::string_view flavour = {});

/// The user's own; `id` is what reports call it.
std::unique_ptr<Store> make_user_store(const std::string& url);

namespace detail {
std::unique_ptr<Store> make_redis(const StoreKind& kind, Pace pace, std::string_view flavour);
std::unique_ptr<Store> make_zookeeper(const StoreKind& kind, Pace pace, std::string_view flavour);
std::unique_ptr<Store> make_memcached(const StoreKind& kind, Pace pace, std::string_view flavour);
/// The number behind `label` in a text of lines.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view label);
}  // namespace detail

}  // namespace dlock::compare

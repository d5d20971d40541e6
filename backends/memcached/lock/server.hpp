// SPDX-License-Identifier: Apache-2.0
//
// One server: the line to it, its waiters, the locks held on it, and its last known facts. When it
// has lost everything, the held locks are checked at once, not at their next renewal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/memcached/lock/acquire.hpp"
#include "backends/memcached/lock/claim.hpp"
#include "backends/memcached/lock/poller.hpp"
#include "backends/memcached/lock/renew.hpp"
#include "backends/memcached/wire/line.hpp"
#include "dlock/spi/event_sink.hpp"

namespace dlock::memcached {

/// Loop only.
class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(Env& env, EventSink& sink, Session::Settings settings, Poller::Pace pace);

  void start();
  /// Ends every wait; no event is reported any more.
  void stop();
  Line& line() noexcept { return *line_; }

  const std::string& address() const noexcept { return address_; }
  /// Empty: it has never answered.
  const std::optional<ServerInfo>& info() const noexcept { return info_; }
  /// Called when it answers for the first time, or with other settings.
  std::function<void()> on_changed;

  void hold(const KeyClaimPtr& claim) { held_[claim->number()] = claim; }
  void forget(const KeyClaim& claim) { held_.erase(claim.number()); }

  /// Returns when its key may be free, a poll failed, or the claim is woken otherwise.
  asio::awaitable<void> wait(KeyClaimPtr claim, TimePoint deadline);
  /// This process has just released the key.
  void given_back(const std::string& key);
  void add_stray(ReleaseOrder stray, TimePoint until);

  static RenewOrder order_of(const KeyClaim& claim);

 private:
  void learn(ServerInfo info);
  void warn_of_evictions(const ServerInfo& info);
  void keep_polling();
  asio::awaitable<void> poll_while_needed();
  asio::awaitable<void> poll_once();
  asio::awaitable<void> check_held();
  void wake(KeyClaim* claim);
  void wake_all();

  Env& env_;
  EventSink& sink_;
  std::string address_;
  std::shared_ptr<Line> line_;
  Poller poller_;
  Signal poll_now_;
  bool polling_ = false;
  bool checking_ = false;
  bool stopped_ = false;
  std::optional<ServerInfo> info_;
  std::optional<std::uint64_t> evictions_seen_;
  std::map<std::uint64_t, std::weak_ptr<KeyClaim>> held_;
};

/// Returns the failure with the server's address.
Failure about(const Server& server, Failure why);

}  // namespace dlock::memcached

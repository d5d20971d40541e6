// SPDX-License-Identifier: Apache-2.0
//
// The one connection on which a process receives the messages that a lock may be free. It is opened
// for the first waiter, and opened again when it ends. Each time it is subscribed, waiters must
// poll once, since earlier messages were missed. Without it waiters poll. Loop only.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "backends/redis/rules/pace.hpp"
#include "backends/redis/wire/dial.hpp"

namespace dlock::redis {

class Subscriber final : public std::enable_shared_from_this<Subscriber> {
 public:
  struct Callbacks {
    std::function<void(const std::string&)> on_message;
    std::function<void()> on_subscribed;
    /// Called each time the server refuses the subscription.
    std::function<void(const Failure&)> on_refused;
    /// Returns whether any waiter needs it: an idle subscription is not pinged.
    std::function<bool()> in_use;
  };

  Subscriber(Env& env, std::shared_ptr<const DialSettings> settings, std::string channel,
             Callbacks callbacks);

  /// Starts the subscription for a waiter.
  void want();
  /// Subscribes to another channel, until stop_listening_to().
  void listen_to(const std::string& channel);
  void stop_listening_to(const std::string& channel) noexcept;
  /// Returns whether messages arrive, as far as this process knows.
  bool stands() const noexcept { return stands_ && connection_ && connection_->is_open(); }
  /// Ends it. No callback is called after this.
  void stop();
  /// After stop(): waits until nothing of it is under way.
  asio::awaitable<void> stopped(TimePoint deadline);

 private:
  struct Subscribed {
    Failure failure;
    bool refused = false;  ///< by an error reply of the server
  };
  static asio::awaitable<void> run(std::shared_ptr<Subscriber> self);
  asio::awaitable<void> turn();
  void give_up_turn(const std::exception_ptr& thrown);
  asio::awaitable<Subscribed> subscribe(TimePoint deadline);
  asio::awaitable<void> listen(TimePoint since);

  Env& env_;
  const std::shared_ptr<const DialSettings> settings_;
  const std::string channel_;
  std::set<std::string> other_channels_;
  Callbacks callbacks_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Signal> end_;  ///< the end of `connection_`
  Signal stop_;                  ///< notified by stop() only, so that no pause is cut short
  Pace pace_;
  const std::shared_ptr<DialStop> dialling_ = std::make_shared<DialStop>();
  OneShot<bool> ended_;
  bool stands_ = false;  ///< `connection_` counts as subscribed
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::redis

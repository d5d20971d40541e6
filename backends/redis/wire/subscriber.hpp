// SPDX-License-Identifier: Apache-2.0
//
// The one connection on which we hear that a lock may be free for one of our waiters. Made when
// somebody first waits, made anew when it ends; each time it stands, waiters must look once for
// themselves, since what was said before was not heard. While there is none, waiters poll. Loop
// only.
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
    /// The server's word that there is no subscription to be had, each time that it is given.
    std::function<void(const Failure&)> on_refused;
    /// Whether anybody waits: an idle subscription is not worth a ping.
    std::function<bool()> in_use;
  };

  Subscriber(Env& env, std::shared_ptr<const DialSettings> settings, std::string channel,
             Callbacks callbacks);

  /// Somebody waits.
  void want();
  /// The same on another channel, until stop_listening_to().
  void listen_to(const std::string& channel);
  void stop_listening_to(const std::string& channel) noexcept;
  /// What is said to us is heard, as far as we know.
  bool stands() const noexcept { return stands_ && connection_ && connection_->is_open(); }
  /// No callback comes after this.
  void stop();
  /// After stop(): waits until nothing of it is under way.
  asio::awaitable<void> stopped(TimePoint deadline);

 private:
  struct Subscribed {
    Failure failure;
    bool refused = false;  ///< by the server's word
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
  std::shared_ptr<Signal> end_;  ///< of `connection_`
  Signal stop_;                  ///< of us, and nothing else: no pause is cut short
  Pace pace_;
  const std::shared_ptr<DialStop> dialling_ = std::make_shared<DialStop>();
  OneShot<bool> ended_;
  bool stands_ = false;  ///< `connection_` has been believed
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::redis

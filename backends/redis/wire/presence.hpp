// SPDX-License-Identifier: Apache-2.0
//
// Sends the numbered presence messages of a process while locks may be handed over to it: a few per
// second, on the connection of all requests. Loop only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backends/redis/rules/hand_over.hpp"
#include "backends/redis/wire/link.hpp"

namespace dlock::redis {

class Presence final : public std::enable_shared_from_this<Presence> {
 public:
  /// `patience`: how long the server keeps this process's waiters in a queue without a poll.
  /// `in_use`: whether any waiter is left and can receive messages.
  Presence(Env& env, std::shared_ptr<Link> link, std::string_view instance,
           std::chrono::milliseconds patience, std::function<bool()> in_use);

  /// A waiter that may be handed a lock is waiting. Presence messages are sent from now on, until
  /// no such waiter is left. If they cannot be sent, a release notifies the waiter instead.
  void want();
  /// Returns the time just before that presence message was sent, if it counts.
  std::optional<TimePoint> sent(std::uint64_t word) const { return words_.sent(word); }
  /// The connection is a new one: presence messages on the old one do not count.
  void forget() { words_.forget(); }
  /// Ends sending.
  void stop();
  /// After stop(): waits until nothing of it is under way.
  asio::awaitable<void> stopped(TimePoint deadline);

 private:
  static asio::awaitable<void> run(std::shared_ptr<Presence> self);
  asio::awaitable<void> turn();
  asio::awaitable<void> say();

  Env& env_;
  const std::shared_ptr<Link> link_;
  const std::string key_;
  const std::chrono::milliseconds patience_;
  const std::function<bool()> in_use_;
  SentWords words_;
  TimePoint next_{};  ///< the next word, not before
  Signal stop_;
  OneShot<bool> ended_;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::redis

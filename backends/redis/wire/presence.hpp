// SPDX-License-Identifier: Apache-2.0
//
// The numbered words by which a process says that it is there, while locks that are handed over may
// be handed to it: a few a second, on the connection of all requests. Loop only.
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
  /// `patience`: how long a waiter of ours stays in a queue without a look. `in_use`: whether
  /// anybody waits, and hears what is said to him.
  Presence(Env& env, std::shared_ptr<Link> link, std::string_view instance,
           std::chrono::milliseconds patience, std::function<bool()> in_use);

  /// Somebody waits who may be handed a lock: words are sent from now on, until nobody does. Where
  /// they cannot be, he is woken instead.
  void want();
  /// Just before the word of that number was sent, if it is one that counts.
  std::optional<TimePoint> sent(std::uint64_t word) const { return words_.sent(word); }
  /// The connection is another one: what was said on the last one does not count any more.
  void forget() { words_.forget(); }
  /// Nothing is sent after this.
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

// SPDX-License-Identifier: Apache-2.0
//
// Strategy: finds the store of a lock, on a route whose locks are in one of several stores. A route
// of one store has none: the engine acquires there.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/store/acquisition.hpp"
#include "dlock/config.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::core {

class Engine;

/// The handler, which stays where it is until it is called.
inline detail::AcquireHandler once(std::shared_ptr<detail::AcquireHandler> handler) {
  return [handler = std::move(handler)](error_code ec, LockHandle got) {
    if (auto told = std::exchange(*handler, {})) told(ec, std::move(got));
  };
}

/// Loop only.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// `request`: as for the route's first store (Engine::at() converts it for another). Calls
  /// `handler` exactly once, and leaves it where it is if it throws. Returns the canceller.
  virtual std::function<void()> start(Acquisition::Request request,
                                      std::shared_ptr<detail::AcquireHandler> handler) = 0;
  /// The store that shows the lock's holder.
  virtual asio::awaitable<Result<std::string>> home(std::string name) = 0;
};

/// The strategies of one start of an engine, which share what they know. Loop only.
class Strategies {
 public:
  virtual ~Strategies() = default;
  virtual std::unique_ptr<Strategy> make(const RouteConfig& route) = 0;
};

/// Makes those of the layer that is linked with the core (migration/layer.cpp). The engine outlives
/// it.
std::unique_ptr<Strategies> make_strategies(Engine& engine);

}  // namespace dlock::core

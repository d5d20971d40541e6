// SPDX-License-Identifier: Apache-2.0
//
// What Session asks of one connection to one server: single commands, as many under way as there
// are askers, each bounded by a deadline. An add, cas, remove, increment or gets is on its way when
// the call returns; what it gives waits for the answer. TextClient is the real one; the simulation
// has its own. Loop only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

/// After an answer with which the connection cannot be trusted it is closed, and whatever else is
/// under way comes to nothing: `unknown`. Commands are carried out in the order of the calls. A
/// coroutine that open() gives ends before the client does; the others may live longer.
class Client {
 public:
  virtual ~Client() = default;

  /// A connection in the place of the one before.
  asio::awaitable<Answer> open(TimePoint deadline) {
    begin_era();
    return open_now(deadline);
  }
  virtual void drop() = 0;
  /// For good: whoever waits for an answer is told `closed`, and so is everybody after him.
  virtual void close() = 0;
  virtual bool is_open() const noexcept = 0;

  /// Numbers that were said before say nothing from now on.
  void begin_era() noexcept { ++era_; }
  std::uint64_t era() const noexcept { return era_; }

  /// The requests of this turn are written together, where the client decides when to write.
  virtual void gather() noexcept {}
  virtual asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                                      std::time_t exptime, TimePoint deadline) = 0;
  virtual asio::awaitable<Answer> cas(const std::string& key, const std::string& value,
                                      std::time_t exptime, std::uint64_t cas,
                                      TimePoint deadline) = 0;
  /// Only with a number that an add or a cas on this connection has said.
  virtual asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas,
                                         TimePoint deadline) = 0;
  virtual asio::awaitable<Number> increment(const std::string& key, std::uint64_t by,
                                            TimePoint deadline) = 0;
  /// As Commands::seconds_left(). Unless overridden: refused.
  virtual asio::awaitable<Number> seconds_left(const std::string& key, TimePoint deadline);
  virtual asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint deadline) = 0;
  /// `into` lives until the coroutine has ended.
  virtual asio::awaitable<Answer> stats(ServerInfo& into, TimePoint deadline) = 0;
  /// What is in `into` already, from `stats`, says whether meta commands are tried; if they are
  /// known, they are used from now on.
  virtual asio::awaitable<Answer> settings(ServerInfo& into, TimePoint deadline) = 0;

 private:
  virtual asio::awaitable<Answer> open_now(TimePoint deadline) = 0;

  std::uint64_t era_ = 0;
};

inline asio::awaitable<Number> Client::seconds_left(const std::string& /*key*/,
                                                    TimePoint /*deadline*/) {
  Number unknown;
  unknown.answer.outcome = Outcome::refused;
  co_return unknown;
}

/// How a backend reaches its servers: over sockets, or to a simulated one.
using MakeClient =
    std::function<std::unique_ptr<Client>(Env& env, Endpoint server, std::uint32_t flags)>;

/// TextClient.
const MakeClient& text_driver();

}  // namespace dlock::memcached

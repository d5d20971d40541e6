// SPDX-License-Identifier: Apache-2.0
//
// The interface of one connection to one server, for Session: single commands, any number at once,
// each bounded by a deadline. An add, cas, remove, increment or gets is sent when the call returns;
// its coroutine waits for the answer. TextClient is the real one; the simulation has its own. Loop
// only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

/// If an answer shows that the connection cannot be trusted, the client closes it; all other
/// pending commands end with `unknown`. Commands are executed in the order of the calls. A
/// coroutine from open() ends before the client does; the others may outlive it.
class Client {
 public:
  virtual ~Client() = default;

  /// Opens a connection that replaces the previous one.
  asio::awaitable<Answer> open(TimePoint deadline) {
    begin_era();
    return open_now(deadline);
  }
  virtual void drop() = 0;
  /// Closes permanently: pending and later commands end with `closed`.
  virtual void close() = 0;
  virtual bool is_open() const noexcept = 0;

  /// Earlier item numbers are not valid from now on.
  void begin_era() noexcept { ++era_; }
  std::uint64_t era() const noexcept { return era_; }

  /// The requests of this turn are written together, where the client decides when to write.
  virtual void gather() noexcept {}
  virtual asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                                      std::time_t exptime, TimePoint deadline) = 0;
  virtual asio::awaitable<Answer> cas(const std::string& key, const std::string& value,
                                      std::time_t exptime, std::uint64_t cas,
                                      TimePoint deadline) = 0;
  /// Only with a number that an add or a cas on this connection has returned.
  virtual asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas,
                                         TimePoint deadline) = 0;
  virtual asio::awaitable<Number> increment(const std::string& key, std::uint64_t by,
                                            TimePoint deadline) = 0;
  /// As Commands::seconds_left(). Unless overridden: refused.
  virtual asio::awaitable<Number> seconds_left(const std::string& key, TimePoint deadline);
  virtual asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint deadline) = 0;
  /// `into` lives until the coroutine has ended.
  virtual asio::awaitable<Answer> stats(ServerInfo& into, TimePoint deadline) = 0;
  /// The facts that `into` already has, from `stats`, decide whether meta commands are tried. If
  /// the server knows them, they are used from now on.
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

// SPDX-License-Identifier: Apache-2.0
//
// What Session asks of one connection to one server: single commands, one at a time, each bounded
// by a deadline. TextClient is the real one; the simulation has its own. Loop only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

/// A command after whose answer the connection cannot be trusted closes it. The coroutines'
/// references must live until they have ended.
class Client {
 public:
  virtual ~Client() = default;

  void until(TimePoint deadline) { deadline_ = deadline; }
  TimePoint deadline() const { return deadline_; }

  /// The first command connects.
  void open() {
    begin_era();
    open_now();
  }
  virtual void drop() noexcept = 0;
  /// For good: whoever waits for an answer is told `closed`, and so is everybody after him.
  virtual void close() noexcept = 0;
  virtual bool is_open() const noexcept = 0;
  /// Some command was not done, or not answered, because of close().
  virtual bool has_told_closed() const noexcept = 0;

  /// Numbers that were said before say nothing from now on.
  void begin_era() noexcept { ++era_; }
  std::uint64_t era() const noexcept { return era_; }

  virtual asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                                      std::time_t exptime) = 0;
  virtual asio::awaitable<Answer> cas(const std::string& key, const std::string& value,
                                      std::time_t exptime, std::uint64_t cas) = 0;
  /// Only with a number that an add or a cas on this connection has said.
  virtual asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas) = 0;
  virtual asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) = 0;
  virtual asio::awaitable<Found> gets(const std::vector<std::string>& keys) = 0;
  virtual asio::awaitable<Answer> stats(ServerInfo& into) = 0;
  /// What is in `into` already, from `stats`, says whether meta commands are tried; if they are
  /// known, they are used from now on.
  virtual asio::awaitable<Answer> settings(ServerInfo& into) = 0;

 private:
  virtual void open_now() = 0;

  TimePoint deadline_{};
  std::uint64_t era_ = 0;
};

/// How a backend reaches its servers: over sockets, or to a simulated one.
using MakeClient =
    std::function<std::unique_ptr<Client>(Env& env, Endpoint server, std::uint32_t flags)>;

/// TextClient.
const MakeClient& text_driver();

}  // namespace dlock::memcached

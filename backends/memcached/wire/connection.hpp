// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection to one server: bytes out at once, bytes in as they come, one coroutine that
// waits for them. Loop only; kept alive by its own I/O.
//
// It reads all the time: a server that hangs up while nothing is asked is noticed then, and bytes
// that nobody asked for end the connection before they can be taken for an answer.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "backends/memcached/wire/codec.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Env& env);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Resolves the name and connects to its first address that answers, each with its share of the
  /// time. Once. Clear: it is up.
  asio::awaitable<Failure> connect(Endpoint server, TimePoint deadline);

  /// What is to be sent next; send() empties it. Not while one is under way.
  std::string& out() noexcept { return out_; }
  /// Sends it; what the socket does not take at once follows. An answer is expected from now on.
  void send();
  /// A piece of the answer that has come, until the next more() or answered(); empty: none yet, or
  /// it is broken, which ends it.
  std::optional<Piece> next(bool data_expected);
  /// Until more has come, it has ended, or the deadline: then false.
  asio::awaitable<bool> more(TimePoint deadline);
  /// The answer is complete; bytes beyond it end the connection.
  void answered();

  /// Never throws; who waits is told.
  void close(Failure why) noexcept;
  bool is_open() const noexcept { return open_; }
  /// Why it is not open any more.
  const Failure& failure() const noexcept { return failure_; }

 private:
  struct Lookup;
  using Tcp = boost::asio::ip::tcp;

  asio::awaitable<std::shared_ptr<Lookup>> look_up(Endpoint server, TimePoint deadline);
  asio::awaitable<std::string> connect_to(Tcp::endpoint endpoint, TimePoint deadline);
  std::string open_socket(const Tcp& protocol);
  void shut() noexcept;
  void write_rest();
  void read() noexcept;
  void on_read(boost::system::error_code ec, std::size_t size);
  void end_for_unasked();
  template <class Step>
  void guarded(Step step) noexcept;

  Env& env_;
  Tcp::socket socket_;
  int descriptor_ = -1;
  Signal event_;
  ReplyReader reader_;
  std::string out_;
  std::size_t written_ = 0;  ///< of `out_`, while it is being sent
  bool open_ = true;
  bool sending_ = false;
  bool reading_ = false;
  bool asked_ = false;
  std::optional<boost::system::error_code> connected_;
  Failure failure_;
};

}  // namespace dlock::memcached

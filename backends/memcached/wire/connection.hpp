// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection to one server: requests go out in order, as many in one write as there are,
// and their answers come in the same order. Knows for each request whether it may have reached the
// server when the connection ends. Loop only; kept alive by its own I/O.
//
// It reads all the time: a server that hangs up while nothing is asked is noticed then, and bytes
// that nobody asked for end the connection before they can be taken for an answer.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <memory>
#include <string>

#include "backends/memcached/wire/codec.hpp"
#include "backends/memcached/wire/exchange.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/net/tcp_dial.hpp"
#include "dlock/spi/net/write_pace.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Env& env);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Resolves the name and connects to the first of its addresses that answers. Once. Clear: it is
  /// up.
  asio::awaitable<Failure> connect(Endpoint server, TimePoint deadline);

  /// The next request is written behind what is there; send() says that it is whole.
  std::string& out() noexcept { return out_; }
  /// Writes it, now or with what else is sent in this turn of the loop.
  void send(std::shared_ptr<Exchange> exchange);
  /// The requests of this turn are written together.
  void gather() noexcept { pace_.gather(); }
  /// Whoever asked waits no longer. A server that has said nothing at all since he asked costs the
  /// connection, and so does one that owes too many answers; from one that is only slow they come.
  void give_up(Exchange& exchange);

  /// Whoever waits is told.
  void close(Failure why);
  bool is_open() const noexcept { return open_; }
  /// Why it is not open any more.
  const Failure& failure() const noexcept { return failure_; }

 private:
  using Tcp = boost::asio::ip::tcp;

  void shut() noexcept;
  void write_asked();
  void flush();
  void write_rest();
  void read();
  void on_read(boost::system::error_code ec, std::size_t size);
  void take_answers();
  void end_for_unasked();

  Env& env_;
  Tcp::socket socket_;
  int descriptor_ = -1;
  std::shared_ptr<TcpDial> dial_;  ///< while it connects
  ReplyReader reader_;
  std::string out_;            ///< not handed to the socket yet
  std::string writing_;        ///< with the socket
  std::size_t written_ = 0;    ///< of it
  std::size_t unwritten_ = 0;  ///< so many of `pending_`, at its end, are in `out_`
  /// Whose answers are still to come; also of those who have given up.
  std::deque<std::shared_ptr<Exchange>> pending_;
  TimePoint last_heard_{};
  bool open_ = true;
  enum class Writing : std::uint8_t { no, soon, now };
  Writing writes_ = Writing::no;
  WritePace pace_;
  Failure failure_;
};

}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection to one server. Requests are sent in order, with one write for all that are
// ready, and answers arrive in the same order. When it ends, it knows for each request whether the
// server may have received it. Loop only; kept alive by its own I/O.
//
// It reads all the time. So it notices at once when the server closes an idle connection.
// Unrequested bytes end the connection before they can be treated as an answer.
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

  /// Resolves the name and connects to the first of its addresses that answers. May be called once.
  /// Clear: connected.
  asio::awaitable<Failure> connect(Endpoint server, TimePoint deadline);

  /// The buffer to which the next request is appended; send() completes it.
  std::string& out() noexcept { return out_; }
  /// Sends the request, now or with others of this turn of the loop.
  void send(std::shared_ptr<Exchange> exchange);
  /// The requests of this turn are written together.
  void gather() noexcept { pace_.gather(); }
  /// The caller does not wait any longer. The connection is closed if the server has sent nothing
  /// since the request, or owes too many answers. Late answers of a slow server are still read.
  void give_up(Exchange& exchange);

  /// Ends the connection, and completes all pending exchanges.
  void close(Failure why);
  bool is_open() const noexcept { return open_; }
  /// Why it is not open.
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
  std::size_t written_ = 0;    ///< bytes of `writing_` that are sent
  std::size_t unwritten_ = 0;  ///< this number of `pending_`, at its end, are in `out_`
  /// Exchanges with outstanding answers, also abandoned ones.
  std::deque<std::shared_ptr<Exchange>> pending_;
  TimePoint last_heard_{};
  bool open_ = true;
  enum class Writing : std::uint8_t { no, soon, now };
  Writing writes_ = Writing::no;
  WritePace pace_;
  Failure failure_;
};

}  // namespace dlock::memcached

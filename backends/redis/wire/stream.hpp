// SPDX-License-Identifier: Apache-2.0
//
// A byte stream: TCP, TLS over TCP, or a Unix socket, from one template. Loop only.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>

#include "dlock/detail/unique_function.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::redis {

namespace asio = boost::asio;

class Stream {
 public:
  using OnRead = detail::UniqueFunction<void(error_code, std::size_t)>;
  using OnWritten = detail::UniqueFunction<void(error_code)>;

  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The buffers, and the stream, must live until the handlers were called, which is never inside;
  /// close() ends both.
  virtual void read_some(asio::mutable_buffer into, OnRead handler) = 0;
  virtual void write_all(asio::const_buffer bytes, OnWritten handler) = 0;
  /// Writes what can be written without waiting, which may be nothing; says how much. An error is
  /// the stream's end.
  virtual std::size_t write_now(asio::const_buffer /*bytes*/, error_code& /*ec*/) { return 0; }
  virtual void close() noexcept = 0;
};

using TcpSocket = asio::ip::tcp::socket;
using UnixSocket = asio::local::stream_protocol::socket;
using TlsSocket = asio::ssl::stream<TcpSocket>;

template <class Socket>
class SocketStream final : public Stream {
 public:
  template <class... Args>
  explicit SocketStream(Args&&... args) : socket_(std::forward<Args>(args)...) {}
  ~SocketStream() override { shut(); }

  Socket& socket() noexcept { return socket_; }
  /// A socket that no child keeps: not one that runs another program (Asio's own are inherited by
  /// those), nor one that was only fork()ed. Else the server would go on talking to a dead process.
  template <class Protocol>
  error_code open(const Protocol& protocol) {
    const int descriptor =
        ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (descriptor < 0) return {errno, boost::system::system_category()};
    error_code ec;
    lowest().assign(protocol, descriptor, ec);
    if (ec) {
      ::close(descriptor);
      return ec;
    }
    lowest().non_blocking(true, ec);
    if (ec) {
      error_code ignored;
      lowest().close(ignored);
      return ec;
    }
    close_in_fork_child(descriptor);
    descriptor_ = descriptor;
    return ec;
  }

  /// Adopts a connection of TcpDial.
  void adopt(TcpSocket&& socket) {
    lowest() = std::move(socket);
    descriptor_ = lowest().native_handle();
  }

  void read_some(asio::mutable_buffer into, OnRead handler) override {
    socket_.async_read_some(into, [handler = std::move(handler)](
                                      error_code ec, std::size_t n) mutable { handler(ec, n); });
  }
  void write_all(asio::const_buffer bytes, OnWritten handler) override {
    asio::async_write(
        socket_, bytes,
        [handler = std::move(handler)](error_code ec, std::size_t) mutable { handler(ec); });
  }
  std::size_t write_now(asio::const_buffer bytes, error_code& ec) override {
    if constexpr (std::is_same_v<Socket, TlsSocket>) {
      return Stream::write_now(bytes, ec);
    } else {
      const auto written = socket_.write_some(bytes, ec);
      if (ec == asio::error::would_block || ec == asio::error::try_again) ec = {};
      return written;
    }
  }
  void close() noexcept override { shut(); }

 private:
  auto& lowest() noexcept { return socket_.lowest_layer(); }
  void shut() noexcept {
    if (descriptor_ >= 0) keep_in_fork_child(std::exchange(descriptor_, -1));
    error_code ignored;
    lowest().close(ignored);
  }

  Socket socket_;
  int descriptor_ = -1;
};

}  // namespace dlock::redis

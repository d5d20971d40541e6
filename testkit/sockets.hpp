// SPDX-License-Identifier: Apache-2.0
//
// Plain blocking sockets on 127.0.0.1 with deadlines: for readiness checks, and for tests that play
// a client or a server byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "testkit/await.hpp"

namespace dlock::testkit {

/// Not thread-safe; distinct objects are independent.
class TcpStream {
 public:
  /// nullopt: refused, or not accepted by the deadline.
  static std::optional<TcpStream> connect(std::uint16_t port, Deadline deadline = patience());
  explicit TcpStream(int fd) : fd_(fd) {}
  ~TcpStream();
  TcpStream(TcpStream&& other) noexcept;
  TcpStream& operator=(TcpStream&& other) noexcept;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  /// false: the peer is gone.
  bool send(std::string_view bytes);
  /// What has come, at least one byte; empty: closed, reset, or nothing came by the deadline.
  std::string receive_some(Deadline deadline = patience());
  /// Waits for exactly so many bytes; fewer only when closed, reset or late.
  std::string receive(std::size_t size, Deadline deadline = patience());
  /// How the peer ended it; waits for that, discarding what comes before.
  enum class End { still_open, closed, reset };
  End wait_for_end(Deadline deadline = patience());
  void shutdown_send();
  void close();
  /// Closes with a TCP reset.
  void reset();

 private:
  int fd_ = -1;
};

/// Listens on a port of 127.0.0.1; 0: one that the kernel picks.
class TcpListener {
 public:
  /// Throws std::system_error.
  explicit TcpListener(std::uint16_t port = 0);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  std::uint16_t port() const { return port_; }
  std::optional<TcpStream> accept(Deadline deadline = patience());

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace dlock::testkit

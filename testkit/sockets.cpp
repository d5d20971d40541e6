// SPDX-License-Identifier: Apache-2.0
#include "testkit/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace dlock::testkit {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool ready(int fd, short events, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd set{fd, events, 0};
  return ::poll(&set, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 600000))) == 1;
}

}  // namespace

std::optional<TcpStream> TcpStream::connect(std::uint16_t port, Deadline deadline) {
  TcpStream stream(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(stream.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINPROGRESS || !ready(stream.fd_, POLLOUT, deadline)) return std::nullopt;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(stream.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return std::nullopt;
  }
  ::fcntl(stream.fd_, F_SETFL, 0);
  const int on = 1;
  ::setsockopt(stream.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return stream;
}

TcpStream::~TcpStream() { close(); }

TcpStream::TcpStream(TcpStream&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

TcpStream& TcpStream::operator=(TcpStream&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

bool TcpStream::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string TcpStream::receive_some(Deadline deadline) {
  if (!ready(fd_, POLLIN, deadline)) return {};
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  return got <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(got));
}

std::string TcpStream::receive(std::size_t size, Deadline deadline) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < size && ready(fd_, POLLIN, deadline)) {
    const ssize_t got = ::recv(fd_, bytes.data() + filled, size - filled, 0);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

TcpStream::End TcpStream::wait_for_end(Deadline deadline) {
  std::array<char, 4096> buffer;
  while (ready(fd_, POLLIN, deadline)) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got == 0) return End::closed;
    if (got < 0) return End::reset;
  }
  return End::still_open;
}

void TcpStream::shutdown_send() { ::shutdown(fd_, SHUT_WR); }

void TcpStream::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void TcpStream::reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

TcpListener::TcpListener(std::uint16_t port)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(port);
  socklen_t size = sizeof address;
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd_, 64) != 0 ||
      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    ::close(fd_);
    throw std::system_error(error, std::generic_category(), "cannot listen");
  }
  port_ = ntohs(address.sin_port);
}

TcpListener::~TcpListener() { ::close(fd_); }

std::optional<TcpStream> TcpListener::accept(Deadline deadline) {
  if (!ready(fd_, POLLIN, deadline)) return std::nullopt;
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return TcpStream(fd);
}

}  // namespace dlock::testkit

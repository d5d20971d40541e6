// SPDX-License-Identifier: Apache-2.0
#include "testkit/ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace dlock::testkit {

namespace {

struct Range {
  unsigned first;
  unsigned size;
};

Range range_to_search() {
  unsigned ephemeral_first = 32768;
  unsigned ephemeral_last = 60999;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> ephemeral_first >> ephemeral_last;
  // Five digits throughout, so that a proxy can put one port for another without moving bytes.
  constexpr unsigned first = 10240;
  constexpr unsigned enough = 1024;
  if (ephemeral_first >= first + enough) return {first, ephemeral_first - first};
  if (ephemeral_last + enough <= 65535) return {ephemeral_last + 1, 65535 - ephemeral_last};
  return {first, 65535 - first};  // a kernel set up this way leaves nothing better
}

// The abstract name (leading zero byte) is what makes the reservation die with its process.
int reserve(unsigned port) {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "dlock-testkit-port-" + std::to_string(port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}

// Without SO_REUSEADDR, and for every address: also refuses ports with remains of old connections.
bool nobody_uses(unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

}  // namespace

Port::Port() {
  static const Range range = range_to_search();
  // A random start: processes that begin at once do not walk the same ports one behind the other.
  const unsigned start = std::random_device{}() % range.size;
  for (unsigned step = 0; step < range.size; ++step) {
    const unsigned candidate = range.first + (start + step) % range.size;
    const int fd = reserve(candidate);
    if (fd < 0) continue;
    if (nobody_uses(candidate)) {
      reservation_ = fd;
      number_ = static_cast<std::uint16_t>(candidate);
      return;
    }
    ::close(fd);
  }
  throw std::runtime_error("no free TCP port outside of the ephemeral range");
}

Port::~Port() {
  if (reservation_ >= 0) ::close(reservation_);
}

Port::Port(Port&& other) noexcept
    : reservation_(std::exchange(other.reservation_, -1)),
      number_(std::exchange(other.number_, std::uint16_t{0})) {}

Port& Port::operator=(Port&& other) noexcept {
  std::swap(reservation_, other.reservation_);
  std::swap(number_, other.number_);
  return *this;
}

}  // namespace dlock::testkit

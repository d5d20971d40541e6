// SPDX-License-Identifier: Apache-2.0
//
// Loopback ports for servers under test, safe for test processes that run at once.
//
// "Bind port 0, close, hand the number on" is not enough: between the close and the server's own
// bind the kernel may give the number to another test, or to any outgoing connection, and a server
// that is killed and restarted needs its number a second time. So ports come
//  - from below the kernel's range of ephemeral ports, where no outgoing connection ever lands;
//  - reserved by an abstract Unix socket named after the port: taken by one process only, valid in
//    exactly the network namespace that the port is valid in, and freed by the kernel however the
//    process ends.
#pragma once

#include <cstdint>

namespace dlock::testkit {

/// A reserved TCP port of 127.0.0.1, as long as the object lives. Nothing listens on it yet.
class Port {
 public:
  /// Throws std::runtime_error when no port is free.
  Port();
  ~Port();
  Port(Port&& other) noexcept;
  Port& operator=(Port&& other) noexcept;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::uint16_t number() const { return number_; }

 private:
  int reservation_ = -1;
  std::uint16_t number_ = 0;
};

}  // namespace dlock::testkit

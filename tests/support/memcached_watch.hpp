// SPDX-License-Identifier: Apache-2.0
//
// What a Memcached server says of its own work, as it does it: its `watch` command. Lines arrive
// within some 0.1 s.
#pragma once

#include <cctype>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dlock/spi/name.hpp"
#include "testkit/sockets.hpp"

namespace dlock::testkit {

/// Not thread-safe.
class MemcachedWatch {
 public:
  /// `what`: `mutations` (stores that were asked for), `fetchers` (reads), or both with a space.
  explicit MemcachedWatch(std::uint16_t port, const std::string& what = "mutations")
      : stream_(TcpStream::connect(port)) {
    if (!stream_ || !stream_->send("watch " + what + "\r\n") || stream_->receive(4) != "OK\r\n") {
      throw std::runtime_error("memcached does not let itself be watched");
    }
  }

  /// Hands over the lines that have come: `... key=K status=stored cmd=add ...`.
  void read(const std::function<void(std::string_view)>& take) {
    const auto now = [] { return within(std::chrono::milliseconds(0)); };
    for (auto some = stream_->receive_some(now()); !some.empty();
         some = stream_->receive_some(now())) {
      unread_ += some;
    }
    std::size_t start = 0;
    auto end = unread_.find('\n');
    for (; end != std::string::npos; end = unread_.find('\n', start)) {
      take(std::string_view(unread_).substr(start, end - start));
      start = end + 1;
    }
    unread_.erase(0, start);
  }

  /// Of a line: rises with each, over all of the server's threads.
  static std::uint64_t number_of(std::string_view line) {
    constexpr std::string_view kNumber = " gid=";
    const auto at = line.find(kNumber);
    return at == line.npos ? 0 : std::stoull(std::string(line.substr(at + kNumber.size(), 20)));
  }

  /// As the lines spell a key, with the `key=` in front and the space behind.
  static std::string of_key(std::string_view key) {
    return " key=" +
           percent_escape(key,
                          [](unsigned char byte) {
                            return std::isalnum(byte) != 0 || byte == '-' || byte == '.' ||
                                   byte == '_' || byte == '~';
                          }) +
           " ";
  }

 private:
  std::optional<TcpStream> stream_;
  std::string unread_;
};

}  // namespace dlock::testkit

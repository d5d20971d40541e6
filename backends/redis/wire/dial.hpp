// SPDX-License-Identifier: Apache-2.0
//
// Opens a connection to an address, up to the login: resolve, connect, TLS, AUTH, SELECT. Each
// failure says what to check. Also the errors from before the server's first reply.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backends/redis/wire/connection.hpp"
#include "dlock/spi/password.hpp"

namespace dlock::redis {

struct DialSettings;
class DialStop;

/// A stream under way, or why there is none.
struct Opened {
  std::shared_ptr<Stream> stream;
  Failure failure;
  bool permanent = false;  ///< trying again will not help
};
using OpenStream =
    std::function<asio::awaitable<Opened>(Env& env, std::shared_ptr<const DialSettings> settings,
                                          std::shared_ptr<DialStop> stop, TimePoint deadline)>;

struct DialSettings {
  std::string host;
  std::uint16_t port = 0;
  std::string socket_path;  ///< instead of host and port
  bool tls = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  bool tls_verify = true;
  std::string tls_server_name;
  std::string username;
  std::shared_ptr<Password> password;  ///< null: no login
  int database = 0;
  /// Opens the byte stream instead of a socket: a simulated network. Everything above it is the
  /// same.
  OpenStream open_stream;

  /// For people; without secrets.
  std::string address() const;
};

struct Dialled {
  std::shared_ptr<Connection> connection;  ///< null on failure
  Failure failure;
  bool permanent = false;  ///< trying again will not help
  bool refused = false;    ///< by an error reply of the server
};

/// Cancels a dial from outside: the current step fails soon, and no step follows. Loop only.
class DialStop {
 public:
  void stop() {
    stopped_ = true;
    if (const auto end = std::exchange(end_, {})) end();
  }
  /// A step begins; `end` makes it fail.
  void step(std::function<void()> end) {
    end_ = std::move(end);
    if (stopped_) stop();
  }
  void step_over() { end_ = {}; }
  /// The current dial fails; another dial may follow.
  void cut() {
    if (const auto end = std::exchange(end_, {})) end();
  }
  bool stopped() const noexcept { return stopped_; }

 private:
  std::function<void()> end_;
  bool stopped_ = false;
};

/// `database`: false on a subscriber, which needs none. A `stop` after the end closes the
/// connection.
asio::awaitable<Dialled> dial(Env& env, std::shared_ptr<const DialSettings> settings, bool database,
                              std::shared_ptr<DialStop> stop, TimePoint deadline);

}  // namespace dlock::redis

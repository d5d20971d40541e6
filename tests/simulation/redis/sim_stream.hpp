// SPDX-License-Identifier: Apache-2.0
//
// SimStream: the client's end of a simulated connection, in the place of a socket. Bytes in and
// out; it cuts what is written into commands only because each of them meets a fate of its own.
#pragma once

#include <memory>
#include <string>

#include "backends/redis/wire/dial.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/simulation/redis/session.hpp"

namespace dlock::simulation::redis {

/// Who answers at the server's address. Null: nobody, connections are refused.
struct Address {
  std::shared_ptr<Server> server;
};

class SimStream final : public production::Stream, public std::enable_shared_from_this<SimStream> {
 public:
  SimStream(std::shared_ptr<Client> client, const std::shared_ptr<Address>& address);
  ~SimStream() override;

  /// A clear error is success; empty: no answer by the deadline.
  asio::awaitable<std::optional<error_code>> connect(std::shared_ptr<production::DialStop> stop,
                                                     TimePoint deadline);

  void read_some(asio::mutable_buffer into, OnRead handler) override;
  void write_all(asio::const_buffer bytes, OnWritten handler) override;
  void close() noexcept override;

  // From the world.
  void arrive(std::string bytes);
  void break_off();

 private:
  void take(production::Reply request);
  void knock();
  void answer_knock(error_code ec);
  void fail(error_code ec);
  void pump();

  const std::shared_ptr<Client> client_;
  const std::weak_ptr<Address> address_;
  OneShot<error_code> connected_;
  production::ReplyReader commands_;
  std::weak_ptr<Session> session_;
  std::string inbox_;
  std::size_t taken_ = 0;  ///< of it
  error_code failure_;     ///< what reads and writes end with
  OnRead on_read_;
  asio::mutable_buffer into_;
  bool closed_ = false;
};

/// What DialSettings::open_stream is set to.
asio::awaitable<production::Opened> open_simulated(
    std::shared_ptr<Client> client, std::weak_ptr<Address> address,
    std::shared_ptr<const production::DialSettings> settings,
    std::shared_ptr<production::DialStop> stop, TimePoint deadline);

}  // namespace dlock::simulation::redis

// SPDX-License-Identifier: Apache-2.0
//
// One connection through a FaultProxy: two sockets, and a queue of bytes for each way. Lives on the
// proxy's thread alone.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "testkit/fault_proxy.hpp"

namespace dlock::testkit::detail {

constexpr std::size_t index_of(Direction direction) {
  return direction == Direction::to_server ? 0 : 1;
}

/// What the proxy's commands set, per direction.
struct Faults {
  bool hold = false;
  bool swallow = false;
  bool duplicate = false;
  std::chrono::milliseconds delay{0};
  std::optional<std::size_t> reset_after;
};

/// What all connections share with their proxy.
struct ProxyState {
  std::array<Faults, 2> faults;
  std::shared_ptr<const Filter> filter;  // shared, since a filter may put another in its place
  ProxyStats stats;

  FlowCount& flow(Direction direction) {
    return direction == Direction::to_server ? stats.to_server : stats.to_client;
  }
};

class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  ProxyConnection(ConnectionId id, Socket client, std::shared_ptr<ProxyState> state,
                  std::function<void(ConnectionId)> on_end);

  void start(std::uint16_t server_port);
  void reset();
  void reset_client();
  void hold(Direction direction, bool on);
  void release_held();
  /// Forwards what may go, as far as nothing is being written already.
  void pump(Direction direction);

 private:
  struct Item {
    enum class Kind { bytes, close, reset };
    Kind kind = Kind::bytes;
    std::string bytes;
    std::chrono::steady_clock::time_point due;
    bool hold = false;
  };

  // One way through the connection: from its source's reads to its sink's writes.
  struct Half {
    explicit Half(const boost::asio::any_io_executor& executor) : timer(executor) {}
    std::array<char, 16384> buffer;
    std::deque<Item> queue;
    std::string in_flight;
    boost::asio::steady_timer timer;
    bool writing = false;
    bool hold = false;
    bool read_ended = false;
    bool broken = false;    // the sink takes no more
    bool finished = false;  // the close has been passed on
  };

  Half& half(Direction direction) { return halves_[index_of(direction)]; }
  Faults& faults(Direction direction) { return state_->faults[index_of(direction)]; }
  Socket& source(Direction d) { return d == Direction::to_server ? client_ : server_; }
  Socket& sink(Direction d) { return d == Direction::to_server ? server_ : client_; }

  void read(Direction direction);
  void received(Direction direction, std::string_view bytes);
  void place(Direction direction, Piece piece);
  void push(Direction direction, Item::Kind kind, std::string bytes, bool hold);
  void wait_until_due(Direction direction);
  void write(Direction direction, std::string bytes);
  void finish(Direction direction);
  void end_when_done();

  const ConnectionId id_;
  std::shared_ptr<ProxyState> state_;
  std::function<void(ConnectionId)> on_end_;
  Socket client_;
  Socket server_;
  std::array<Half, 2> halves_;
  bool client_spoke_last_ = false;
  bool ended_ = false;
};

}  // namespace dlock::testkit::detail

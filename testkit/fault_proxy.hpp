// SPDX-License-Identifier: Apache-2.0
//
// A TCP proxy between a client and a server on loopback that misbehaves on demand: it drops, holds,
// swallows, delays, doubles, and resets after so many bytes; and it counts.
//
//   FaultProxy proxy(server.port());
//   connect_client(proxy.port());
//   proxy.hold(Direction::to_client, true);     // the server's answers stay in the proxy
//   ...
//   proxy.hold(Direction::to_client, false);    // and now they arrive, late but complete
//
// Order is kept as TCP keeps it: a close waits behind held and delayed bytes, so a request that is
// held back reaches the server even when its client has long gone.
//
// Every command may be called from any thread and has taken effect when it returns. One thread per
// proxy does all the work and calls the filter.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::testkit {

enum class Direction { to_server, to_client };

/// What to do with bytes on their way.
enum class Verdict {
  forward,
  swallow,  ///< not delivered; the connection goes on
  hold,     ///< stays in the proxy, and all that follows it this way, until `release_held`
  reset,    ///< not delivered, and the connection is reset both ways: a lost reply, for example
};

/// Numbered from 1 in the order of their coming.
using ConnectionId = std::uint64_t;

/// Bytes as a filter passes them on; it may have changed them, or kept some for later.
struct Piece {
  std::string bytes;
  Verdict verdict = Verdict::forward;
};

/// Sees all bytes of a connection and direction, in order, as they come. Called on the proxy's
/// thread; may call the proxy.
using Filter = std::function<std::vector<Piece>(Direction, ConnectionId, std::string_view bytes)>;

/// The simple form of a filter: one verdict for what came in one segment.
using DataHook = std::function<Verdict(Direction, ConnectionId, std::string_view bytes)>;

struct FlowCount {
  std::uint64_t bytes = 0;     ///< received from the sender, whatever became of them
  std::uint64_t segments = 0;  ///< reads that returned bytes
};

struct ProxyStats {
  FlowCount to_server;
  FlowCount to_client;
  std::uint64_t connections = 0;  ///< accepted since the start
  std::size_t open = 0;           ///< with at least one side not closed yet
  std::uint64_t turns = 0;        ///< times the client spoke after the server, or first
};

class FaultProxy {
 public:
  /// Listens on 127.0.0.1 on a reserved port of its own, and connects each client to `server_port`.
  explicit FaultProxy(std::uint16_t server_port, Filter filter = nullptr);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const;
  std::uint16_t server_port() const;
  /// Where connections that come from now on lead: an address that moved to another server.
  void lead_to(std::uint16_t server_port);

  ProxyStats stats() const;
  std::vector<ConnectionId> connections() const;

  void set_filter(Filter filter);
  void on_data(DataHook hook);

  /// Resets all connections, both sides. What was held is lost.
  void drop_all();
  void drop(ConnectionId connection);
  /// Resets the clients' sides only. The server hears of it behind what is held on the way to it.
  void drop_clients();
  /// true: new connections are refused, as where nothing listens. The port stays ours.
  void refuse(bool on);

  /// Stops forwarding; what comes is kept, and forwarded on `hold(direction, false)`.
  void hold(Direction direction, bool on);
  /// The same for one connection.
  void hold(ConnectionId connection, Direction direction, bool on);
  /// Lets go what a filter has told to hold.
  void release_held();
  /// Reads and discards.
  void swallow(Direction direction, bool on);
  void duplicate(Direction direction, bool on);
  /// Each piece arrives that much later; order is kept. 0: at once again.
  void delay(Direction direction, std::chrono::milliseconds by);
  /// Forwards so many more bytes this way, then resets the connection that they came on. Once.
  void reset_after(Direction direction, std::size_t bytes);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dlock::testkit

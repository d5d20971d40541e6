// SPDX-License-Identifier: Apache-2.0
//
// ZooKeeper's wire format as far as a test needs it: what a frame is, and which request a reply
// answers. Decoding is pure; `ZooKeeperFrames` puts it behind a FaultProxy to count frames and to
// act on exactly one of them.
//
//   ZooKeeperFrames frames;
//   FaultProxy proxy(server.port(), frames.filter());
//   frames.once(FrameKind::reply, opcode::create2, Verdict::reset);   // a lost create reply
//   ...
//   EXPECT_EQ(frames.requests(opcode::get_children2), 1);
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testkit/await.hpp"
#include "testkit/fault_proxy.hpp"

namespace dlock::testkit {

/// The request codes of ZooKeeper's protocol.
namespace opcode {
inline constexpr std::int32_t none = 0;
inline constexpr std::int32_t create = 1;
inline constexpr std::int32_t remove = 2;
inline constexpr std::int32_t exists = 3;
inline constexpr std::int32_t get_data = 4;
inline constexpr std::int32_t set_data = 5;
inline constexpr std::int32_t get_children = 8;
inline constexpr std::int32_t sync = 9;
inline constexpr std::int32_t ping = 11;
inline constexpr std::int32_t get_children2 = 12;
inline constexpr std::int32_t check = 13;
inline constexpr std::int32_t multi = 14;
inline constexpr std::int32_t create2 = 15;
inline constexpr std::int32_t create_container = 19;
inline constexpr std::int32_t set_auth = 100;
inline constexpr std::int32_t set_watches = 101;
inline constexpr std::int32_t set_watches2 = 105;
inline constexpr std::int32_t close_session = -11;
}  // namespace opcode

enum class FrameKind { connect_request, request, connect_response, reply, notification };

/// A decoded frame. Fields that its kind does not have are zero or empty.
struct Frame {
  FrameKind kind = FrameKind::request;
  ConnectionId connection = 0;
  std::int32_t xid = 0;
  std::int32_t opcode = 0;  ///< of a reply: the request's that it answers
  std::int64_t zxid = 0;
  std::int32_t error = 0;
  std::string path;                  ///< of a request that has one path, and of a notification
  std::int64_t session = 0;          ///< of a connect request and response
  std::int32_t session_timeout = 0;  ///< the same; milliseconds
  std::int32_t watch_event = 0;      ///< of a notification
  Clock::time_point at;
};

/// Takes a stream of bytes and gives whole frames, each with its length in front of it, as it was
/// sent. A length that ZooKeeper would refuse ends the framing: what follows comes as it is.
class FrameAssembler {
 public:
  std::vector<std::string> push(std::string_view bytes);
  bool framed() const { return framed_; }

 private:
  std::string rest_;
  bool framed_ = true;
};

/// One connection's decoder: it has to see all frames of both directions, in order.
class FrameDecoder {
 public:
  /// `frame` with its length in front. nullopt: too short to be one.
  std::optional<Frame> from_client(std::string_view frame);
  std::optional<Frame> from_server(std::string_view frame);

 private:
  bool client_connected_ = false;
  bool server_connected_ = false;
  // By xid; a client uses the same special xid for all its pings, so there may be several.
  std::multimap<std::int32_t, std::int32_t> waiting_;
};

/// Counts and judges frames. Everything here may be called from any thread.
class ZooKeeperFrames {
 public:
  using Rule = std::function<Verdict(const Frame&)>;

  ZooKeeperFrames();

  /// For a FaultProxy; it stays usable after this object is gone. Several proxies may share one
  /// (of an ensemble): connections are told apart per filter.
  Filter filter();

  /// Judges each whole frame, on the proxy's thread; asked when no `once` matched.
  void set_rule(Rule rule);
  /// The next frame of this kind and opcode gets this verdict, once. For replies: the reply *to*
  /// that opcode; for notifications the opcode counts for nothing.
  void once(FrameKind kind, std::int32_t opcode, Verdict verdict);
  /// How many `once` have not met their frame yet.
  std::size_t pending_once() const;

  std::uint64_t requests(std::int32_t opcode) const;
  std::uint64_t replies(std::int32_t opcode) const;
  /// All but connects and pings.
  std::uint64_t requests() const;
  std::uint64_t notifications() const;
  std::uint64_t connects() const;
  /// How often the client had to wait for the server: requests (pings apart) that were sent after
  /// a reply, or first. Requests sent together count as one.
  std::uint64_t round_trips() const;

  /// All frames since the start or the last `clear`, in the order the proxy saw them.
  std::vector<Frame> log() const;
  void clear();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dlock::testkit

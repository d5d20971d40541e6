// SPDX-License-Identifier: Apache-2.0
//
// One ZooKeeper session over libzookeeper_st, driven by our loop: requests in, results out, nothing
// blocks. Narrow on purpose, so that another client library could stand behind it.
//
// Traps of the library that are dealt with here, and nowhere else:
//  - it opens and closes its own descriptor and often gets the same number back, so Asio watches a
//    duplicate, compared by inode after each step;
//  - it asks for a step by the clock (zookeeper_interest), which becomes an Env timer;
//  - of an even number of servers it would try only every other one;
//  - closing a session may block for seconds: that happens on a helper thread, and every request
//    has been completed before;
//  - its socket is open across exec unless told otherwise (a fork()ed child never calls it: the
//    core keeps all of the parent's objects there untouched);
//  - a request sent while there is no connection is kept and sent later, when nobody waits for it
//    any more: callers submit only while connected().
#pragma once

#include <zookeeper/zookeeper.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/signal.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

struct NodeStat {
  std::int64_t czxid = 0;
  std::int64_t ctime_ms = 0;
  std::int64_t ephemeral_owner = 0;
};

struct Reply {
  int rc = ZOPERATIONTIMEOUT;
  std::string text;  ///< the created path, or the node's data
  std::vector<std::string> children;
  NodeStat stat;
};
using PendingReply = core::OneShot<Reply>;

/// What becomes of a watch, in the order of the server's answers. `set` or `failed` comes first.
enum class WatchEvent {
  set,      ///< the node is there and watched
  absent,   ///< the node is not there; there is no watch
  failed,   ///< the answer was lost; there is no watch
  deleted,  ///< the node has gone; the watch is used up
  changed,  ///< its data changed; the watch is used up
};

class Client final : public std::enable_shared_from_this<Client> {
 public:
  /// Called on the loop, from a step of the client, never inside a submission. May not destroy or
  /// close the client.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_connected() = 0;
    virtual void on_disconnected() = 0;
    /// Final: the server said so, or refused our authentication.
    virtual void on_session_over(bool authentication_failed) = 0;
    virtual void on_watch(const std::string& path, WatchEvent event) = 0;
    /// At `received` a server answered the request that was sent at `sent`; `committed`: it was a
    /// write and a majority has it. In the order of sending. Called before the result is handed
    /// out.
    virtual void on_answer(TimePoint sent, TimePoint received, bool committed) = 0;
  };

  struct Options {
    std::string addresses;  ///< numeric, `1.2.3.4:2181,::1:2181`
    std::chrono::milliseconds session_timeout{0};
    std::string digest;  ///< `user:password`; empty: none
    bool creator_acl = false;
  };

  Client(core::Env& env, Options options, Listener& listener);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// After construction. False: the library refuses (no descriptor or memory left).
  bool start();
  /// Ends the session in the background; `done` is called on the loop, not inside this call. Every
  /// pending request completes with ZCLOSING. The listener is not called any more.
  void close(core::Job done);

  bool connected() const noexcept { return state_ == State::connected; }
  std::int64_t session_id() const noexcept;
  /// As the server granted it.
  std::chrono::milliseconds session_timeout() const noexcept;
  /// Before the request that made the session was sent.
  TimePoint created() const noexcept { return created_; }
  /// The server we talk to, `1.2.3.4:2181`; empty while disconnected.
  std::string server() const;

  void set_addresses(const std::string& addresses);

  enum class Mode { persistent, container, ephemeral_sequential };
  PendingReply create(const std::string& path, std::string_view data, Mode mode);
  PendingReply remove(const std::string& path);
  PendingReply set(const std::string& path, std::string_view data);
  PendingReply exists(const std::string& path);
  PendingReply get(const std::string& path);
  /// Sets a watch if the node is there (and none if it is not). Tells the listener.
  PendingReply get_and_watch(const std::string& path);
  PendingReply children(const std::string& path);
  PendingReply sync(const std::string& path);
  /// A write that changes nothing: a transaction of one `check`.
  PendingReply prove(const std::string& path);
  /// One transaction that sets the node's data, then deletes it: its watchers see a change and find
  /// it gone, which a plain deletion never looks like.
  PendingReply mark_and_remove(const std::string& path, std::string_view data);
  /// Takes our watch off the node, on the server too.
  void forget_watch(const std::string& path);

  /// While it lives, submissions are gathered into one segment.
  class Burst {
   public:
    explicit Burst(Client& client);
    ~Burst();
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

   private:
    Client& client_;
  };

 private:
  enum class State { connecting, connected, over, closed };
  struct Request;
  struct Callbacks;

  Request* begin(bool write);
  PendingReply submitted(Request* request, int rc);
  void finish(Request& request, Reply reply, bool committed);

  void step(int events);
  void skip_no_server(int rc);
  std::ptrdiff_t servers() const noexcept;
  bool is_first_round() const noexcept;
  void post_step();
  int open_descriptor(int descriptor, TimePoint before);
  void drop_descriptor() noexcept;
  void wait_for_socket(int interest);
  void arm(int interest, Duration timeout);
  void tell_listener();
  void forget_watch_here(const std::string& path);
  void cork(bool on) noexcept;
  TimePoint patience_ends() const noexcept;

  core::Env& env_;
  Options options_;
  Listener* listener_;
  zhandle_t* handle_ = nullptr;
  State state_ = State::connecting;
  std::unordered_set<Request*> pending_;
  std::vector<std::pair<std::string, WatchEvent>> watch_events_;

  std::optional<asio::posix::stream_descriptor> socket_;  ///< a duplicate of the library's
  std::uint64_t inode_ = 0;
  std::uint64_t socket_number_ = 0;  ///< counts sockets, so that a late handler knows its own
  bool reading_ = false;
  bool writing_ = false;
  bool step_posted_ = false;
  int corked_ = 0;
  core::TimerId timer_ = 0;
  TimePoint timer_due_ = kNever;
  int attempts_ = 0;         ///< sockets opened since we were last connected, or got a new list
  bool list_is_new_ = true;  ///< nothing was lost since the library got its list of servers
  TimePoint opened_{};       ///< before the present socket was opened
  TimePoint waiting_{};      ///< since when the oldest pending request is the server's turn
  TimePoint created_{};
};

/// The result, or ZOPERATIONTIMEOUT at the deadline.
asio::awaitable<Reply> reply_until(PendingReply pending, TimePoint deadline);

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// One ZooKeeper session: requests and results on the loop; no call blocks. It is an interface, so
// that another client library or a simulated ensemble can implement it. library_client.hpp is the
// real one.
#pragma once

#include <zookeeper/zookeeper.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/wire/redial.hpp"
#include "dlock/clock.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

struct NodeStat {
  std::int64_t czxid = 0;
  std::int64_t ctime_ms = 0;
  std::int64_t ephemeral_owner = 0;
  std::int32_t version = 0;  ///< counts the changes of its data
  std::int64_t mtime_ms = 0;
};

struct Reply {
  int rc = ZOPERATIONTIMEOUT;
  std::string text;  ///< the created path, or the node's data
  std::vector<std::string> children;
  NodeStat stat;
};
using PendingReply = OneShot<Reply>;

/// Event of a watch, in the order of the server's answers. `set`, `written`, `absent` or `failed`
/// is the first.
enum class WatchEvent {
  set,       ///< the node is there and watched; or not there, and watched all the same
  written,   ///< as `set`, and the node's data was written since it was made
  absent,    ///< the node does not exist; no watch is set
  failed,    ///< the answer was lost; no watch is set
  deleted,   ///< the node was deleted; the watch is used up
  changed,   ///< its data changed, or it was made; the watch is used up
  children,  ///< from children_and_watch(): a child was created or deleted; the watch is used up
};

/// The server watches the node.
constexpr bool is_set(WatchEvent event) {
  return event == WatchEvent::set || event == WatchEvent::written;
}

/// Beside the library's codes: what a transaction was to find has changed, and nothing was done.
inline constexpr int kCheckFailed = -1000;

class Client {
 public:
  /// Called on the loop, from a step of the client, never inside a submission. May not destroy or
  /// close the client.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_connected() = 0;
    virtual void on_disconnected() = 0;
    /// A try to connect was refused or failed; the next one follows.
    virtual void on_attempt_failed() {}
    /// Final: the server said so, or refused our authentication.
    virtual void on_session_over(bool authentication_failed) = 0;
    virtual void on_watch(const std::string& path, WatchEvent event) = 0;
    /// A server answered at `received` the request that was sent at `sent`. `committed`: it was a
    /// write that a majority confirmed. Called in the order of sending, before the result is
    /// returned.
    virtual void on_answer(TimePoint sent, TimePoint received, bool committed) = 0;
    /// The server refused a request for want of rights.
    virtual void on_access_denied() {}
  };

  struct Options {
    std::string addresses;  ///< numeric, `1.2.3.4:2181,::1:2181`
    std::chrono::milliseconds session_timeout{0};
    std::string digest;  ///< `user:password`; empty: none
    bool creator_acl = false;
    /// Between two rounds of the servers while none lets us in: at least that.
    Duration least_pause{};
    /// The tries of all clients of a session object; null: of this one alone.
    Redial::Spent tries_spent{};
  };

  Client() = default;
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// After construction. False: the library refuses (no descriptor or memory left).
  virtual bool start() = 0;
  /// Ends the session in the background; `done` is called on the loop, not inside this call. Every
  /// pending request completes with ZCLOSING. The listener is not called any more.
  virtual void close(Job done) = 0;
  /// Ends the connection, so that close() leaves the session to its timeout.
  virtual void abandon() {}

  virtual bool connected() const noexcept = 0;
  virtual std::int64_t session_id() const noexcept = 0;
  /// As the server granted it.
  virtual std::chrono::milliseconds session_timeout() const noexcept = 0;
  /// Before the request that made the session was sent.
  virtual TimePoint created() const noexcept = 0;
  /// The server of the connection, `1.2.3.4:2181`; empty while disconnected.
  virtual std::string server() const = 0;

  /// Returns whether a server has, since the connection was lost, accepted a connection and closed
  /// it without a reply about the session. A server whose data is older than this client's does
  /// that every time.
  virtual bool turned_away() const noexcept { return false; }

  /// Returns the outcome of each server's tries since the last connection: `1.2.3.4:2181 refused
  /// the connection`. Empty: unknown.
  virtual std::string tried() const { return {}; }

  virtual void set_addresses(const std::string& addresses) = 0;
  /// Adds a digest to the session, beside the one that it began with.
  virtual void authenticate(const std::string& /*digest*/) {}

  enum class Mode { persistent, container, ephemeral_sequential, ephemeral };
  virtual PendingReply create(const std::string& path, std::string_view data, Mode mode) = 0;
  virtual PendingReply remove(const std::string& path) = 0;
  virtual PendingReply set(const std::string& path, std::string_view data) = 0;
  /// ZBADVERSION if it is another one by now.
  virtual PendingReply set_version(const std::string& path, std::string_view data,
                                   std::int32_t version) = 0;
  virtual PendingReply remove_version(const std::string& path, std::int32_t version) = 0;
  virtual PendingReply exists(const std::string& path) = 0;
  virtual PendingReply get(const std::string& path) = 0;
  /// Sets a watch if the node exists. Notifies the listener.
  virtual PendingReply get_and_watch(const std::string& path) = 0;
  /// Sets a watch, also on a node that does not exist. Notifies the listener.
  virtual PendingReply exists_and_watch(const std::string& path) = 0;
  virtual PendingReply children(const std::string& path) = 0;
  /// As children(), and the listener is notified of the next change only. A client without such
  /// watches may only list. Without a connection no watch is kept.
  virtual PendingReply children_and_watch(const std::string& path) { return children(path); }
  virtual PendingReply sync(const std::string& path) = 0;
  /// A write that changes nothing: a transaction of one `check`.
  virtual PendingReply prove(const std::string& path) = 0;
  /// One transaction that sets the node's data, then deletes it. Its watchers see a change and find
  /// it deleted; a plain deletion is never seen like that.
  virtual PendingReply mark_and_remove(const std::string& path, std::string_view data) = 0;
  /// As mark_and_remove(), and the transaction also creates a node `heir` with `text`. A client
  /// that finds the one deleted sees the other.
  virtual PendingReply mark_and_replace(const std::string& path, std::string_view data,
                                        const std::string& heir, std::string_view text,
                                        Mode mode) = 0;
  /// The condition that a node exists and its data has this version.
  struct Check {
    std::string path;
    std::int32_t version = 0;
  };
  struct Change {
    enum class Kind {
      create,   ///< as create(); the reply has the path and the czxid
      set,      ///< as set_version()
      remove,   ///< as remove_version()
      replace,  ///< as mark_and_replace(), the heir persistent
    };
    Kind kind = Kind::create;
    std::string path{};
    std::string data{};
    Mode mode = Mode::persistent;  ///< for create
    std::int32_t version = -1;     ///< for set and remove
    std::string heir{};            ///< for replace, with its text
    std::string text{};
  };
  /// One transaction that makes the change if the check holds, else kCheckFailed.
  virtual PendingReply change_if(const Check& check, const Change& change) = 0;
  /// Removes the watch of the node, on the server too.
  virtual void forget_watch(const std::string& path) = 0;
  /// The one of children_and_watch(), while disconnected: it is not set again.
  virtual void forget_children(const std::string& /*path*/) {}

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
  /// On: requests from now on may be held back. Off: they are sent.
  virtual void cork(bool on) noexcept = 0;

  int corked_ = 0;
};

/// Returns the reply that arrived in time, or ZOPERATIONTIMEOUT.
Reply in_time(std::optional<Reply> reply);
/// The result, or ZOPERATIONTIMEOUT at the deadline.
asio::awaitable<Reply> reply_until(PendingReply pending, TimePoint deadline);

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// One ZooKeeper session: requests in, results out, on our loop, nothing blocks. An interface, so
// that another client library, or a simulated ensemble, can stand behind it; library_client.hpp is
// the real one.
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
  absent,    ///< the node is not there; there is no watch
  failed,    ///< the answer was lost; there is no watch
  deleted,   ///< the node has gone; the watch is used up
  changed,   ///< its data changed, or it was made; the watch is used up
  children,  ///< of children_and_watch(): a child came or went; the watch is used up
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
    /// A try to connect was refused, or came to nothing; the next one follows.
    virtual void on_attempt_failed() {}
    /// Final: the server said so, or refused our authentication.
    virtual void on_session_over(bool authentication_failed) = 0;
    virtual void on_watch(const std::string& path, WatchEvent event) = 0;
    /// At `received` a server answered the request that was sent at `sent`; `committed`: it was a
    /// write and a majority has it. In the order of sending. Called before the result is handed
    /// out.
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
  /// The server we talk to, `1.2.3.4:2181`; empty while disconnected.
  virtual std::string server() const = 0;

  /// Since the connection was lost a server took ours and hung up without a word about the session.
  /// One whose data is older than what we have seen does that, for ever.
  virtual bool turned_away() const noexcept { return false; }

  /// What became of the tries to connect since it was connected last, for each server:
  /// `1.2.3.4:2181 refused the connection`. Empty: nothing is known.
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
  /// Sets a watch if the node is there (and none if it is not). Tells the listener.
  virtual PendingReply get_and_watch(const std::string& path) = 0;
  /// Sets a watch, also on a node that is not there. Tells the listener.
  virtual PendingReply exists_and_watch(const std::string& path) = 0;
  virtual PendingReply children(const std::string& path) = 0;
  /// The same, and the listener is told of the next change, with nothing before that. A client
  /// without such watches may list alone. While there is no connection none is kept.
  virtual PendingReply children_and_watch(const std::string& path) { return children(path); }
  virtual PendingReply sync(const std::string& path) = 0;
  /// A write that changes nothing: a transaction of one `check`.
  virtual PendingReply prove(const std::string& path) = 0;
  /// One transaction that sets the node's data, then deletes it: its watchers see a change and find
  /// it gone, which a plain deletion never looks like.
  virtual PendingReply mark_and_remove(const std::string& path, std::string_view data) = 0;
  /// The same, and in it a node `heir` with `text` is made: whoever comes to see the one gone sees
  /// the other.
  virtual PendingReply mark_and_replace(const std::string& path, std::string_view data,
                                        const std::string& heir, std::string_view text,
                                        Mode mode) = 0;
  /// That a node is there and its data is of this version.
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
    Mode mode = Mode::persistent;  ///< of create
    std::int32_t version = -1;     ///< of set and remove
    std::string heir{};            ///< of replace, with its text
    std::string text{};
  };
  /// One transaction that makes the change if the check holds, else kCheckFailed.
  virtual PendingReply change_if(const Check& check, const Change& change) = 0;
  /// Takes our watch off the node, on the server too.
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
  /// On: what is submitted from now on may be held back. Off: it goes out.
  virtual void cork(bool on) noexcept = 0;

  int corked_ = 0;
};

/// What was there in time, or ZOPERATIONTIMEOUT.
Reply in_time(std::optional<Reply> reply);
/// The result, or ZOPERATIONTIMEOUT at the deadline.
asio::awaitable<Reply> reply_until(PendingReply pending, TimePoint deadline);

}  // namespace dlock::zookeeper

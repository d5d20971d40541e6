// SPDX-License-Identifier: Apache-2.0
//
// The one session that all locks of a store share. It is created, kept alive, and created again
// when it is over. It knows until when its locks are valid (deadline.hpp) and shares watches. It
// sends the requests that show the server that this client lives: a write while a claim is queued,
// otherwise a read. A queued claim may become first at any moment, and that must not cost a round
// trip. extend() proves held locks.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/rules/deadline.hpp"
#include "backends/zookeeper/wire/client.hpp"
#include "backends/zookeeper/wire/library.hpp"
#include "backends/zookeeper/wire/resolver.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/spi/password.hpp"

namespace dlock::zookeeper {

class Session final : public Client::Listener, public std::enable_shared_from_this<Session> {
 public:
  struct Settings {
    std::vector<Endpoint> endpoints;
    std::chrono::milliseconds timeout{0};
    std::string username;
    std::shared_ptr<Password> password;  ///< null: no digest
    bool creator_acl = false;
    std::string root;  ///< node for the reads and writes of the heartbeat
  };

  Session(Env& env, Settings settings, Library& library, EventSink& sink);
  ~Session() override;

  /// Makes the first session, or another after a failed start.
  asio::awaitable<Failure> open(TimePoint deadline);
  /// Notifies the sink from now on.
  void announce() { announced_ = true; }
  /// Ends it: at the latest at the deadline.
  /// `keeps_it`: the servers keep the session until its timeout.
  asio::awaitable<void> close(TimePoint deadline, bool keeps_it = false);
  /// The same without waiting, for destructors.
  void stop();
  /// After a failed start: back to where open() begins.
  asio::awaitable<void> drop(TimePoint deadline);

  bool is_ready(TimePoint deadline) const noexcept {
    return connected() && !closed_ && env_.now() < deadline;
  }
  /// True when connected, at the latest at the deadline.
  asio::awaitable<bool> ready(TimePoint deadline);
  bool connected() const noexcept { return client_ && client_->connected(); }
  /// Only while connected().
  Client& client() noexcept { return *client_; }
  /// Counts sessions: what was made under another number is gone with its session.
  std::uint64_t number() const noexcept { return number_; }
  std::string server() const { return client_ ? client_->server() : std::string(); }
  const std::string& addresses() const noexcept { return addresses_; }
  /// For other objects that try the same servers.
  const Redial::Spent& tries_spent() const noexcept { return tries_spent_; }
  /// `tried 1.2.3.4:2181 refused the connection`: why it is not connected, server by server.
  std::string tried() const;
  /// Why it is not connected, as far as a try has failed; clear if none has.
  Failure link_failure() const;
  /// Returns what became of each server so far; empty when connected or before the first attempt.
  std::string pending_attempt() const;

  /// From the last write that a majority confirmed.
  Validity validity() const noexcept;
  Duration timeout() const noexcept { return rule_.timeout(); }
  /// Sets the timeout that the next session requests. Only after drop().
  void ask_for(std::chrono::milliseconds timeout) { settings_.timeout = timeout; }
  /// A write that moves validity().
  asio::awaitable<Reply> prove(TimePoint deadline);

  /// While one exists, the session writes heartbeats itself.
  class Waiting {
   public:
    explicit Waiting(std::shared_ptr<Session> session);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::shared_ptr<Session> session_;
  };

  using OnWatch = std::function<void(WatchEvent)>;

 private:
  struct Watched {
    std::map<std::uint64_t, OnWatch> shares;
    bool always = false;
    bool armed = false;
    bool failed = false;
    int asking = 0;                ///< answers that are due
    std::uint64_t set_number = 0;  ///< Session::sets_ when it was last set
  };
  using WatchedNodes = std::map<std::string, Watched>;  ///< by their paths

 public:
  /// A share in the watch of a node; the last one removes the watch from the server. Its callback
  /// is called on the loop, from a step of the client.
  class Watch {
   public:
    Watch(std::shared_ptr<Session> session, WatchedNodes::iterator node, std::uint64_t id)
        : session_(std::move(session)), node_(node), id_(id) {}
    ~Watch() { session_->unwatch(node_, id_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    std::shared_ptr<Session> session_;
    WatchedNodes::iterator node_;
    std::uint64_t id_;
  };
  std::unique_ptr<Watch> watch(const std::string& path, OnWatch callback);
  /// Watches a node that need not exist: its creation is reported as a change.
  std::unique_ptr<Watch> watch_always(const std::string& path, OnWatch callback);
  /// Asks the server (again) to watch. Every share is notified of the result. After a lost answer,
  /// without a connection, and after its loss, the next connection asks again.
  PendingReply set_watch(const std::string& path);
  /// As set_watch(), in line behind other such watches: no more are requested at once than a server
  /// can handle.
  void set_watch_in_turn(const std::string& path);
  /// The server watches the node over this connection, or has been asked to before whatever is
  /// asked from now on.
  bool watching(const std::string& path) const;

  /// When a server last answered anything.
  TimePoint last_answer() const noexcept { return last_answer_; }

  /// Called when there is a connection, and at least once a beat (a quarter of the session) while
  /// there is, however much is answered meanwhile.
  std::function<void()> on_beat;
  /// Called when a child of that node was created or deleted (Client::children_and_watch()).
  std::function<void(const std::string&)> on_children;
  /// Called when the connection is lost, before the sink is notified.
  std::function<void()> on_down;
  /// Called when a session is over, before the sink is notified.
  std::function<void()> on_over;
  /// Called when another session has begun, before the sink is notified.
  std::function<void()> on_new;

 private:
  void on_connected() override;
  void on_disconnected() override;
  void on_attempt_failed() override { attempt_failed_ = true; }
  void on_session_over(bool authentication_failed) override;
  void on_watch(const std::string& path, WatchEvent event) override;
  void on_answer(TimePoint sent, TimePoint received, bool committed) override;
  void on_access_denied() override;

  void stop_timers() noexcept;
  Client::Options client_options() const;
  std::string digest() const;
  void read_password(Job done);
  asio::awaitable<void> password_read(TimePoint deadline);
  bool start_client();
  void start_again();
  void start_or_try_later();
  void start_later(TimePoint when);
  void tell_waiters();
  void forget_watches();
  void set_more_watches();
  void ask_for_lost_watches();
  void unwatch(WatchedNodes::iterator node, std::uint64_t id);
  void drop_if_unused(WatchedNodes::iterator entry);
  void arm_beat(TimePoint when);
  void beat();
  void look_up_again();
  void look_up_again(Duration pause);
  static asio::awaitable<void> look_up(std::shared_ptr<Session> self,
                                       std::shared_ptr<Resolver> resolver);
  void stop_lookups() noexcept;
  void doubt_session_at(TimePoint when);
  void doubt_session();
  void trust_session();

  Env& env_;
  Settings settings_;
  Library& library_;
  EventSink& sink_;
  /// Shared by this session, the next one and the newcomer.
  const Redial::Spent tries_spent_ = std::make_shared<TimePoint>();
  std::shared_ptr<Client> client_;
  std::string addresses_;
  std::shared_ptr<Resolver> resolver_;  ///< open() waits for it
  std::uint64_t number_ = 0;
  bool announced_ = false;
  bool closed_ = false;
  bool authentication_failed_ = false;
  bool reading_password_ = false;
  std::string digest_;           ///< the digest of the current client
  bool attempt_failed_ = false;  ///< since it was connected last
  bool rule_started_ = false;
  DeadlineRule rule_;
  TimePoint last_answer_{};
  int waiting_ = 0;
  WatchedNodes watched_;
  std::uint64_t last_watch_ = 0;
  std::uint64_t last_gone_ = 0;    ///< watches up to this one were other sessions'
  std::deque<std::string> unset_;  ///< watches that are to be asked for, in turn
  std::size_t asking_ = 0;         ///< watches whose answers are due
  std::uint64_t sets_ = 0;         ///< watches that were set, of all sessions
  std::uint64_t sets_before_ = 0;  ///< the same, when the present connection was made
  std::vector<OneShot<bool>> ready_waiters_;
  TimerId beat_timer_ = 0;
  TimerId lookup_timer_ = 0;
  TimerId doubt_timer_ = 0;
  /// The listener of a new session. It shows whether servers accept any session.
  struct Nobody final : Client::Listener {
    void on_connected() override {}
    void on_disconnected() override {}
    void on_session_over(bool) override {}
    void on_watch(const std::string&, WatchEvent) override {}
    void on_answer(TimePoint, TimePoint, bool) override {}
  };
  Nobody nobody_;
  std::shared_ptr<Client> newcomer_;
  bool let_in_ = false;                       ///< it was, lately
  TimePoint started_{};                       ///< the present client
  std::shared_ptr<Resolver> next_addresses_;  ///< while it looks up where the servers are now
};

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// The connection that all locks of a store share. It connects, inspects the server, and connects
// again with backoff when the connection ends. Before it uses a new connection, it kills the old
// one on the server by its client id, so that no late copy of a request can arrive. It also
// compares the server with the one before. Loop only.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "backends/redis/rules/pace.hpp"
#include "backends/redis/wire/dial.hpp"
#include "backends/redis/wire/inspection.hpp"

namespace dlock::redis {

class Link final : public std::enable_shared_from_this<Link> {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// Before on_up: what the server says now, and whether it is still the same one.
    virtual void on_inspected(const ServerFacts& facts, ServerChange change) = 0;
    virtual void on_up() = 0;
    virtual void on_down(const Failure& why) = 0;
    virtual void on_old_connection_kept() = 0;
    /// Called while the link is down: the server refuses a password or certificate that it accepted
    /// before. Called once until the link is up.
    virtual void on_login_refused(const Failure& why) = 0;
  };

  Link(Env& env, std::shared_ptr<const DialSettings> settings, Listener& listener);

  /// Connects, trying again until the deadline unless that cannot help. On failure all is as
  /// before.
  asio::awaitable<Failure> open(TimePoint deadline);
  /// Ends the link permanently. The listener is not called after this.
  void stop();
  /// After stop(): waits until nothing of it is under way.
  asio::awaitable<void> stopped(TimePoint deadline);

  /// Asks the connected server again how it is set up, and reports it to the listener.
  asio::awaitable<void> inspect_again(TimePoint deadline);
  /// True when connected; false at the deadline, or when only the operator can help.
  asio::awaitable<bool> ready(TimePoint deadline);
  bool up() const noexcept { return connection_ && connection_->is_open(); }
  /// Only while up().
  const std::shared_ptr<Connection>& connection() const noexcept { return connection_; }

  /// Returns why the link is not up.
  Failure failure() const;
  /// Returns the failure of the last attempt; clear if none has failed or the link is up.
  Failure last_failure() const { return up() ? Failure{} : failure_; }
  /// Returns why the link is not up, or what the first attempt waits for. Empty when up.
  std::string pending_attempt() const;
  /// Returns whether the failure needs an operator's action.
  bool failed_for_good() const noexcept { return permanent_; }

 private:
  struct Attempt {
    std::shared_ptr<Connection> connection;
    Failure failure;
    bool permanent = false;
  };
  /// One life of the loop: from open() to stop(), or to a failed open().
  struct Life {
    explicit Life(Env& env) : stop(env), ended(env) {}
    Signal stop;  ///< notified by stop only: the end of a connection must not cut the pause short
    bool over = false;
    std::shared_ptr<DialStop> dialling = std::make_shared<DialStop>();
    OneShot<bool> ended;  ///< notified when the loop has ended
  };

  asio::awaitable<Attempt> attempt(std::shared_ptr<Life> life);
  static asio::awaitable<void> run(std::shared_ptr<Link> self, std::shared_ptr<Life> life);
  asio::awaitable<void> turn(std::shared_ptr<Life> life);
  void give_up_turn(Life& life, const std::exception_ptr& thrown);
  asio::awaitable<void> stay_up(std::shared_ptr<Life> life, std::shared_ptr<Connection> connection);
  void went_down();
  void begin_life();
  void end_life();
  void tell_waiters();

  Env& env_;
  const std::shared_ptr<const DialSettings> settings_;
  Listener& listener_;
  std::shared_ptr<Life> life_;
  std::shared_ptr<Life> last_life_;  ///< that may still be ending
  Duration patience_;                ///< for one attempt
  Pace pace_;                        ///< for all lives together
  std::shared_ptr<Connection> connection_;
  ServerFacts facts_;
  std::vector<std::int64_t> old_clients_;  ///< connections that may still have requests of this
                                           ///< process; 0: unknown
  std::int64_t client_ = 0;                ///< the number of `connection_`, 0: unknown
  Failure failure_;
  bool permanent_ = false;
  bool was_up_ = false;
  bool refusal_told_ = false;  ///< on_login_refused, since it was up
  bool stopped_ = false;
  std::vector<OneShot<bool>> waiters_;
};

}  // namespace dlock::redis

// SPDX-License-Identifier: Apache-2.0
//
// Session: one connection as its server sees it, with what is on its way in both directions. It
// outlives the client's end: what a dead client has sent arrives all the same, until the server
// has closed the connection.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "tests/simulation/network.hpp"
#include "tests/simulation/redis/resp.hpp"
#include "tests/simulation/redis/wire.hpp"

namespace dlock::simulation::redis {

class Server;
class SimStream;

/// A process that uses the store. Gone with its backend.
struct Client {
  Process& process;
  Network& network;
  bool crashed = false;

  bool is_cut() const { return crashed || network.is_cut(process); }
};

class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(World& world, std::weak_ptr<Server> server, const std::shared_ptr<Client>& client,
          std::weak_ptr<SimStream> stream);

  std::int64_t id() const noexcept { return id_; }
  void set_id(std::int64_t id) noexcept { id_ = id; }
  void move_to(std::weak_ptr<Server> server) noexcept { server_ = std::move(server); }
  bool is_of(const Process& process) const;

  // From the client's end.
  /// One command sets out. False: the connection is reset at the client's end, now.
  bool take_off(Command command, const Fate& fate);
  /// The client's end has closed; what it has sent comes first.
  void hang_up_later(Duration travels);

  // At the server.
  /// Something nobody asked for; it meets its own fate.
  void push_later(const Reply& message);
  /// The server closes it; the client's end hears of that.
  void break_off();

  std::set<std::string> channels;

 private:
  void arrive(const Command& command, const Fate& fate);
  void end();
  void answer(const Reply& reply, Duration travels);
  void tell_reset(Duration travels);
  std::string who() const;

  World& world_;
  std::weak_ptr<Server> server_;
  std::weak_ptr<Client> client_;
  std::weak_ptr<SimStream> stream_;
  const std::string name_;
  std::shared_ptr<Wire> requests_;
  std::shared_ptr<Wire> replies_;
  std::int64_t id_ = 0;
  bool open_ = true;
};

}  // namespace dlock::simulation::redis

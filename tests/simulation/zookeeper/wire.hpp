// SPDX-License-Identifier: Apache-2.0
//
// Wire: one TCP connection between a simulated process and a server of the ensemble: what Network
// says becomes of each message happens here.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "tests/simulation/network.hpp"
#include "tests/simulation/zookeeper/ensemble.hpp"

namespace dlock::simulation {

/// What reaches the client's kernel.
struct Arrival {
  enum class Kind { session, reply, change, closed };
  Kind kind = Kind::closed;
  std::uint64_t request = 0;
  ensemble::Outcome outcome = {};
  ensemble::Change change = {};
  std::int64_t session = 0;  ///< 0: it is over
  milliseconds timeout{0};
};

class Wire final : public ensemble::Peer, public std::enable_shared_from_this<Wire> {
 public:
  using OnArrival = std::function<void(Arrival)>;
  struct Ends {
    World& world;
    Network& network;
    ensemble::Ensemble& servers;
  };
  Wire(Ends ends, Process& process, int server, OnArrival on_arrival);

  int server() const noexcept { return server_; }
  void open(std::int64_t session, milliseconds timeout, std::int64_t seen);
  void send(std::uint64_t request, ensemble::Operation operation);
  /// The client's end closes, after what it has sent. Nothing arrives any more.
  void close();
  /// The client's host is gone: its kernel resets the connection.
  void crash();

 private:
  void on_session(std::int64_t session, milliseconds timeout) override;
  void on_reply(std::uint64_t request, const ensemble::Outcome& outcome) override;
  void on_change(const ensemble::Change& change) override;
  void on_closed() override;

  bool is_cut() const;
  void reset();
  void trace(const Arrival& arrival);
  void to_server(const Fate& fate, Job job);
  void to_client(Duration time, Arrival arrival);
  void reply_with(const Fate& fate, Arrival arrival);

  Ends ends_;
  Process* process_;  ///< null: nobody listens any more
  const int server_;
  OnArrival on_arrival_;
  std::map<std::uint64_t, Fate> fates_;  ///< of the requests under way; 0: of opening
  std::int64_t session_ = 0;
  TimePoint last_there_{};
  TimePoint last_back_{};
  bool silent_there_ = false;
  bool silent_back_ = false;
  bool dead_ = false;
};

}  // namespace dlock::simulation

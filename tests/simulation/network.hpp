// SPDX-License-Identifier: Apache-2.0
//
// Network: what becomes of each message between a process and a server. Healthy unless a fault was
// armed for the process. The stores carry the fate out, as a TCP connection would: bytes of one
// connection keep their order, and what was lost or reset is never followed by more.
#pragma once

#include <map>
#include <optional>

#include "tests/simulation/fault.hpp"
#include "tests/simulation/process.hpp"

namespace dlock::simulation {

/// Of one request and its reply.
struct Fate {
  /// lost: this direction of the connection is silent from here on, and nobody is told.
  /// reset: both ends are told, now.
  enum class Break { none, lost, reset };
  Duration there{};  ///< how long the request travels
  Duration back{};   ///< how long the reply does
  Break request = Break::none;
  Break reply = Break::none;  ///< the request was carried out
  bool twice = false;         ///< carried out a second time right after; its reply is not sent
  /// The connection is reset now; the request is carried out all the same, this much later.
  std::optional<Duration> overtaken;
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  /// Asked once for each request a process sends.
  Fate fate(Process& from);
  /// Of a message that nobody asked for (a watch event, a published message), server to process.
  Fate push_fate(Process& to);
  /// How long a healthy message travels.
  Duration latency();

  /// The next message of that process, either way, meets the fault. `done` is called when it does.
  void arm(Process& process, Fault fault, Job done);
  void disarm(const Process& process) noexcept { armed_.erase(&process); }

  /// No message gets through, and no connection comes about; existing ones are silent.
  void cut(Process& process) { cut_.insert(&process); }
  void mend(Process& process) noexcept { cut_.erase(&process); }
  /// Also for a process that has crashed.
  bool is_cut(const Process& process) const noexcept {
    return !process.is_alive() || cut_.find(&process) != cut_.end();
  }

 private:
  struct Armed {
    Fault fault;
    Job done;
  };
  World& world_;
  std::map<const Process*, Armed> armed_;
  std::set<const Process*> cut_;
};

}  // namespace dlock::simulation

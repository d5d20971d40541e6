// SPDX-License-Identifier: Apache-2.0
//
// Program: one simulated process of a fleet in mode move, with its own connections to both stores:
// a worker, a worker that knows one store alone, or an operator's command.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "migration/move/migrating_acquisition.hpp"
#include "tests/simulation/migration/fleet_program.hpp"

namespace dlock::simulation::migration {

/// An operator's command: its connections, and the process that it is.
struct Command {
  std::shared_ptr<core::Store> source;
  std::shared_ptr<core::Store> target;
  Process& process;
};

/// The state that the programs of a run share, and the store of each grant.
struct Fleet : FleetState {
  /// Runs the operator's next command.
  std::function<asio::awaitable<void>(Command)> command;
  std::map<std::string, std::uint64_t> grants;  ///< by lock
  std::map<GrantId, std::string> stores;        ///< by grant
  std::uint64_t target_only_grants = 0;
  std::uint64_t source_only_grants = 0;
};

class Program : public FleetProgram {
 public:
  enum class Kind { worker, source_only, target_only, operators };

  Program(World& world, Recorder& recorder, Fleet& fleet, Kind kind, std::string name,
          Server& source, Server& target, const Weather& weather);

  void close() override;
  Kind kind() const noexcept { return kind_; }

 private:
  asio::awaitable<void> live() override;
  std::function<void()> acquire(const std::string& lock, Limits limits,
                                detail::AcquireHandler done) override;
  void on_granted(GrantId grant, const std::string& lock, const LockHandle& handle) override;
  asio::awaitable<void> operate();

  Fleet& fleet_;
  const Kind kind_;
  const std::shared_ptr<core::migration::GateBelief> gate_;
};

}  // namespace dlock::simulation::migration

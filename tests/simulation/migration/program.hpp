// SPDX-License-Identifier: Apache-2.0
//
// Program: one simulated process of a fleet, with its own connections to both stores: a worker, a
// worker that knows one store alone, or an operator's command.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "migration/move/coordinator.hpp"
#include "migration/move/migrating_acquisition.hpp"
#include "tests/simulation/migration/wire.hpp"
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation::migration {

using core::migration::Goal;
using core::migration::Plan;

/// An operator's command: its connections, and the process that it is.
struct Command {
  std::shared_ptr<core::Store> source;
  std::shared_ptr<core::Store> target;
  Process& process;
};

/// What the programs of a run share: the operators' present aim, and what was granted where.
struct Fleet {
  /// Which lock a worker wants next; null: one of the plan's names.
  std::function<std::string()> choose;
  /// What an operator does next; null: a step of a plan with names.
  std::function<asio::awaitable<void>(Command)> command;
  std::map<std::string, std::uint64_t> grants;  ///< by lock
  Plan plan;
  Goal goal = Goal::rollback;
  bool certify = false;  ///< with Goal::finish: all names are FINAL
  bool stopping = false;
  Duration longest_hold = milliseconds(300);
  Duration longest_think = milliseconds(300);
  std::map<GrantId, std::string> stores;  ///< of grants
  std::uint64_t target_only_grants = 0;
  std::uint64_t source_only_grants = 0;
};

class Program {
 public:
  enum class Kind { worker, source_only, target_only, operators };

  Program(World& world, Recorder& recorder, Fleet& fleet, Kind kind, std::string name,
          Server& source, Server& target, const Weather& weather);

  void start();
  bool is_idle() const noexcept { return running_ == 0; }
  /// Killed: unseen by everybody it takes itself apart.
  void crash();
  void close();
  bool is_alive() const noexcept { return process_.is_alive(); }
  Process& process() noexcept { return process_; }
  Kind kind() const noexcept { return kind_; }

 private:
  struct Outcome {
    error_code ec;
    LockHandle handle;
    GrantId grant = 0;
    std::shared_ptr<bool> told_lost;
  };

  asio::awaitable<void> work();
  asio::awaitable<void> operate();
  asio::awaitable<void> take_a_name();
  asio::awaitable<void> use(std::string lock);
  OneShot<Outcome> want(const std::string& lock);
  detail::AcquireHandler record_outcome(const std::string& lock, OneShot<Outcome> done);
  core::Acquisition::Request request_for(const std::string& lock, const core::Store& store);
  bool ends() const { return fleet_.stopping || !process_.is_alive(); }

  World& world_;
  Recorder& recorder_;
  Fleet& fleet_;
  const Kind kind_;
  Process process_;
  std::shared_ptr<SimHost> host_;
  std::shared_ptr<core::Store> source_;
  std::shared_ptr<core::Store> target_;
  std::shared_ptr<core::migration::GateBelief> gate_;  ///< of a plan that has one
  int running_ = 0;
};

}  // namespace dlock::simulation::migration

// SPDX-License-Identifier: Apache-2.0
//
// An operator of a plan with a leased gate: runs `dlock migrate`, and programs beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "tests/live/migration/leased_stores.hpp"

namespace dlock::fleet {

/// Exit statuses of docs/cli.md.
inline constexpr int kExitWaits = 3;
inline constexpr int kExitRefused = 4;
inline constexpr int kExitLost = 76;
inline constexpr int kExitConfig = 78;

class LeasedOperator {
 public:
  explicit LeasedOperator(const LeasedStores& stores) : stores_(stores) {}

  /// Runs `dlock migrate` with the plan's name after the verb.
  testkit::Finished migrate(std::vector<std::string> arguments) const;
  void expect(int status, const std::vector<std::string>& arguments,
              std::string_view part = {}) const;
  /// Starts the plan with this gate lease.
  void start(std::chrono::milliseconds gate_lease) const;
  /// Runs a command that leaves the gate in `state`.
  void turn(const std::vector<std::string>& arguments, const std::string& state) const;
  void both() const { turn({"advance"}, "S_THEN_T"); }
  void target_alone() const { turn({"advance", "--legacy-gone"}, "T_ALONE"); }
  /// The state of the gate.
  std::string state() const;

 private:
  const LeasedStores& stores_;
};

/// `dlock` with a configuration file.
testkit::ProcessOptions dlock_program(const std::filesystem::path& config,
                                      std::vector<std::string> arguments);
/// A manager that logs nothing.
LockManager open_quietly(const std::filesystem::path& config);

/// Acquires the lock, within a minute.
LockHandle acquire(LockManager& locks, const std::string& name);
/// The error of an acquire that must fail.
error_code refusal(LockManager& locks, const std::string& name, std::chrono::milliseconds wait);

/// The locks of one store, whatever the plan says.
class StoreView {
 public:
  explicit StoreView(const std::string& url);
  bool is_held(const std::string& name) const;
  /// Waits until the lock is held there, or is not.
  bool await(const std::string& name, bool is_held) const;

 private:
  mutable LockManager locks_;
};

}  // namespace dlock::fleet

// SPDX-License-Identifier: Apache-2.0
//
// What the contract suite must know of a backend to run on it. A new backend is one file that makes
// a Harness: NAME_harness() in NAME_harness.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dlock/lock_manager.hpp"

namespace dlock::contract {

class Harness {
 public:
  virtual ~Harness() = default;

  /// A store for one test, with nothing in it. The first call starts the server, if there is one;
  /// it serves all tests of this process.
  virtual std::string fresh_url() = 0;

  /// Whether other processes reach the store. If not, a test's peers live in this process.
  virtual bool has_processes() const { return true; }

  /// The port that fresh_url() leads to, for a proxy in between; 0: there is no link to break.
  virtual std::uint16_t port() const { return 0; }

  /// The longest that the lock of a killed process stays taken.
  virtual std::chrono::milliseconds dead_holder_bound() const = 0;

  /// Whether a lock's status names those who wait for it. A store that keeps no places for them
  /// cannot.
  virtual bool shows_waiters() const { return true; }
  /// If not: how many requests for the lock have been refused since fresh_url(). Each waiter begins
  /// with one.
  virtual std::size_t asked_in_vain(const std::string& /*name*/) { return 0; }

  /// Stops the server, if there is one, and starts it on what it has kept.
  virtual void restart_server() {}

  /// Whether there is a server that can be reached through another port.
  virtual bool has_link() const { return false; }

  /// Takes a lock that `manager` holds away from it, behind its back.
  virtual void take_away(LockManager& manager, const std::string& url, const std::string& name);
};

/// One backend: its name as the tests show it, and its harness, made when first used.
struct Store {
  const char* name;
  Harness& (*harness)();
};

/// Those of every backend that is built; generated.
std::vector<Store> stores();
/// Those that other processes reach.
std::vector<Store> stores_with_processes();
/// Those behind a link that can break.
std::vector<Store> stores_with_a_link();

}  // namespace dlock::contract

// SPDX-License-Identifier: Apache-2.0
//
// The contract suite: what every backend has to keep, as tests, for its author to run. A program
// that links dlock::contract and defines stores() and open_options() is the suite on its backend:
//
//   find_package(dlock REQUIRED COMPONENTS contract)   # needs GoogleTest
//   add_executable(contract_test harness.cpp)
//   target_link_libraries(contract_test PRIVATE dlock::contract)
//
// Features that a store does not declare (Capabilities) are not tested.
// `contract_test --gtest_filter='*.Case/NAME'` runs one case. examples/backend is a whole example.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

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

  /// Returns the port that fresh_url() leads to, for a proxy in between. 0: none can be broken.
  virtual std::uint16_t port() const { return 0; }

  /// The longest that the lock of a killed process stays taken.
  virtual std::chrono::milliseconds dead_holder_bound() const = 0;
  /// Returns how long a waiter that was killed or stopped may delay the waiters behind it while
  /// permits are free or readers hold the lock. Default: dead_holder_bound() and 2 s.
  virtual std::chrono::milliseconds dead_waiter_bound() const {
    return dead_holder_bound() + std::chrono::seconds(2);
  }

  /// Whether a lock's status names its waiters. A store that keeps no places for them cannot.
  virtual bool shows_waiters() const { return true; }
  /// If not: the number of requests for the lock that were refused since fresh_url(). Each waiter
  /// begins with one.
  virtual std::size_t asked_in_vain(const std::string& /*name*/) { return 0; }

  /// Number of concurrent waiters in the test of many. Fewer for a store that needs time for each.
  virtual std::size_t many_waiters() const { return 1000; }

  /// Whether a holder is notified that an operator has broken its lock. A store without such a mark
  /// reports the record that the next renewal finds: none, or another client's claim.
  virtual bool tells_breaks() const { return true; }

  /// Whether Backend::watch_holder() works, so that observers of leaders need not poll.
  virtual bool tells_holders() const { return false; }

  /// Stops the server, if there is one, and starts it on what it has kept.
  virtual void restart_server() {}

  /// Whether there is a server that can be reached through another port.
  virtual bool has_link() const { return false; }

  /// Takes a lock that `manager` holds away from it, behind its back.
  virtual void take_away(LockManager& manager, const std::string& url, const std::string& name);
};

/// One backend: its name as the tests show it, and its harness. It is made in programs that only
/// ask what it can do, too: what it starts or creates, it does in fresh_url().
struct Store {
  const char* name;
  Harness& (*harness)();
};

/// To be defined by the program: the backends to test.
std::vector<Store> stores();
/// To be defined by the program: how to open their URLs, with `backends` at least.
OpenOptions open_options();

}  // namespace dlock::contract

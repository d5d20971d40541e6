// SPDX-License-Identifier: Apache-2.0
//
// A client of another make in a process of its own, and the protocol of the programs in
// tests/interop/clients: each prints `ready`, then answers a command a line with a line.
//
//   try NAME          held WHEN | busy      does not wait; WHEN: ns on the monotonic clock
//   acquire NAME      held WHEN             waits for as long as it takes
//   increment FILE    done                  adds one to the number in it, and loses what others add
//   count NAME N FILE done                  N times: acquire, increment, release
//   release, extend, break                  done | refused    of the lock that was asked for last
//   revocable NAME    done                  as acquire, and can be asked for it (Curator)
//   asked             done | refused        has been asked for it since the last time, or soon is
//   revoke NAME       done                  asks the holder for it (Curator)
//   exit
//
// Whatever is thrown in it is answered with `error TYPE TEXT`. A client whose library is not there
// prints `missing` instead of `ready`, and how to get it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "testkit/await.hpp"
#include "testkit/process.hpp"

namespace dlock::interop {

/// Not thread-safe. The destructor kills the program.
class ForeignClient {
 public:
  /// Returns once it is ready. Throws std::runtime_error with what it has said instead.
  explicit ForeignClient(testkit::ProcessOptions program);

  /// When it was granted the lock; nullopt: somebody else holds it.
  std::optional<testkit::Clock::time_point> try_acquire(const std::string& name);
  /// Asks, and does not wait for the answer.
  void begin_acquire(const std::string& name) { send("acquire " + name); }
  /// When it was granted the lock; nullopt: not by the deadline.
  std::optional<testkit::Clock::time_point> granted(
      testkit::Deadline deadline = testkit::patience());
  /// `done`, `refused` or `error ...`.
  std::string release() { return ask("release"); }
  std::string extend() { return ask("extend"); }
  std::string break_lock() { return ask("break"); }
  std::string acquire_revocable(const std::string& name) { return ask("revocable " + name); }
  std::string was_asked() { return ask("asked"); }
  std::string revoke(const std::string& name) { return ask("revoke " + name); }
  std::string increment(const std::string& file) { return ask("increment " + file); }
  void begin_count(const std::string& name, int times, const std::string& file);
  /// The next answer; empty: none.
  std::string answer(testkit::Deadline deadline = testkit::patience());

  void kill9() { process_.kill_and_wait(); }
  bool pause() { return process_.pause(); }
  bool resume() { return process_.resume(); }

 private:
  void send(const std::string& command);
  std::string ask(const std::string& command);

  testkit::Process process_;
};

}  // namespace dlock::interop

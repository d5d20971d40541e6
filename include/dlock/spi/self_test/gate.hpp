// SPDX-License-Identifier: Apache-2.0
//
// Runs the self-test (steps.hpp) once per server, before the first grant. Loop only.
//
//   if (!gate_.is_open()) {
//     const auto test = co_await gate_.pass([&] { return send_steps(deadline); }, deadline);
//     if (!lets_in(test)) co_return not_granted(test->failure(address, error));
//   }
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/self_test/steps.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::inline v0 {

/// Sends the steps for a new key.
using SelfTestRun = std::function<boost::asio::awaitable<SelfTest>()>;
/// Null: it did not end in time.
using SelfTestResult = std::shared_ptr<const SelfTest>;

/// Runs the test, and again if an answer was wrong: a restart, a flush or an eviction during the
/// first run makes answers wrong, too.
boost::asio::awaitable<SelfTest> run_self_test(SelfTestRun run);

/// Returns whether locks may be granted after that result.
bool lets_in(const SelfTestResult& result) noexcept;

/// Runs the test once per server, for all callers that wait for it at the same time.
class SelfTestGate {
 public:
  explicit SelfTestGate(Env& env);

  /// The server has passed, or denies the test.
  bool is_open() const noexcept { return state_->is_open; }
  /// Another server answers from now on.
  void close() noexcept;

  /// Returns the result of the run that this call begins, or of the one under way. Opens the gate
  /// if the server has passed, or denies the test. Blocks until `deadline` for a run under way.
  boost::asio::awaitable<SelfTestResult> pass(SelfTestRun run, TimePoint deadline);

 private:
  /// Calls keep it: a call that never ends may outlive its gate.
  struct State {
    explicit State(Env& of) : env(of) {}
    Env& env;
    bool is_open = false;
    bool is_running = false;
    std::uint64_t server = 0;  ///< Counts calls of close().
    std::vector<OneShot<SelfTestResult>> waiting;
  };
  class Running;

  std::shared_ptr<State> state_;
};

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// The way to one server: procedures run at once on its one session, each with its own deadline. The
// caller is never blocked past that deadline. A procedure that has not begun by then never begins
// (not executed). One that is under way ends by then, since each of its commands does (maybe
// executed).
//
// One line per server, so that a stopped server blocks only its own locks.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "backends/memcached/wire/call.hpp"

namespace dlock::memcached {

/// A procedure's end.
template <class T>
struct Ran {
  std::optional<T> result;  ///< empty: it has not begun
  Failure why;              ///< without a result; without the server's name
};

/// Loop only.
class Line : public std::enable_shared_from_this<Line> {
 public:
  /// `on_info`: called from within a procedure whenever the server has reported its facts.
  Line(Env& env, Session::Settings settings, Session::OnFacts on_info);

  void start() noexcept { is_started_ = true; }
  /// Every waiting caller receives `closed` at once.
  void stop();

  /// `work(call)` is the procedure.
  template <class T, class Work>
  asio::awaitable<Ran<T>> run(Work work, TimePoint deadline) {
    const auto self = shared_from_this();
    Ran<T> ran;
    Turns::Turn turn(turns_);
    if (!turn.is_ours()) co_await turn.wait(deadline);
    if (!turn.is_ours() || is_stopped_ || !is_started_) {
      ran.why = why_not();
      co_return ran;
    }
    Call call(session_, commands_until(deadline));
    auto result = co_await work(call);
    ran.result.emplace(std::move(result));
    co_return ran;
  }

 private:
  TimePoint commands_until(TimePoint deadline) const;
  /// The failure for a caller without a result.
  Failure why_not() const;

  Env& env_;
  Session session_;
  Turns turns_;
  bool is_started_ = false;
  bool is_stopped_ = false;
};

}  // namespace dlock::memcached

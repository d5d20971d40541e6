// SPDX-License-Identifier: Apache-2.0
//
// The way to one server: procedures take turns on its session, in order, one at a time. The caller
// is never held up past his deadline: a procedure that has not begun by then never will (surely not
// done), one that is under way ends by then, since each of its commands does (maybe done).
//
// One line per server, so that a stopped server holds up its own locks only.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "backends/memcached/wire/session.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// A procedure's end.
template <class T>
struct Ran {
  std::optional<T> result;
  bool started = false;  ///< without a result: maybe done
  Failure why;           ///< without a result; without the server's name
};

/// Loop only.
class Line : public std::enable_shared_from_this<Line> {
 public:
  /// `on_info`: told whenever the server said how it is, from within a procedure.
  Line(Env& env, Session::Settings settings, Session::OnFacts on_info);

  void start() noexcept { is_started_ = true; }
  /// Whoever waits is answered at once: `closed`.
  void stop() noexcept;

  /// `work(session)` is the procedure.
  template <class T, class Work>
  asio::awaitable<Ran<T>> run(Work work, TimePoint deadline) {
    const auto self = shared_from_this();
    Ran<T> ran;
    Turn turn(*this);
    if (!turn.is_ours()) {
      try {
        co_await turn.wait(deadline);
      } catch (const std::exception& error) {
        ran.why = failure_of(error);
      }
    }
    if (!turn.is_ours() || is_stopped_ || !is_started_) {
      if (!ran.why.error) ran.why = why_not();
      co_return ran;
    }
    begin(deadline);
    ran.started = true;
    try {
      auto result = co_await work(session_);
      ran.result.emplace(std::move(result));
    } catch (const std::exception& error) {
      // Of an answer that was half read nobody knows the rest.
      ran.why = failure_of(error);
      session_.drop();
    }
    if (session_.has_told_closed()) {
      ran.result.reset();
      ran.why = why_not();
    }
    co_return ran;
  }

 private:
  /// A place in the line, from its constructor to its destructor.
  class Turn {
   public:
    explicit Turn(Line& line);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    bool is_ours() const noexcept;
    asio::awaitable<bool> wait(TimePoint deadline) { return called_.wait_until(deadline); }

   private:
    friend class Line;
    Line& line_;
    Signal called_;
  };

  void begin(TimePoint deadline);
  /// For whoever gets no result.
  Failure why_not() const;

  Env& env_;
  Session session_;
  std::deque<Turn*> turns_;  ///< the first one's is now
  bool is_started_ = false;
  bool is_stopped_ = false;
};

}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// `dlock hold`: a lock for scripts and for programs in other languages. One JSON object a line.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <mutex>

#include "cli/acquire.hpp"
#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/process/nesting.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/commands.hpp"
#include "cli/verbs/hold_export.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::exit_of;
using program::OutputFailed;
using program::print_line;
using program::Signals;
using program::status;

namespace {

/// State changes on their way from dlock's callback thread to standard output.
class Changes {
 public:
  void push(HandleState state) {
    const std::scoped_lock guard(mutex_);
    queue_.push_back(state);
    wake_.notify();
  }
  std::deque<HandleState> take() {
    wake_.clear();
    const std::scoped_lock guard(mutex_);
    return std::exchange(queue_, {});
  }
  int descriptor() const noexcept { return wake_.descriptor(); }

 private:
  std::mutex mutex_;
  std::deque<HandleState> queue_;
  Wake wake_;
};

class Holder {
 public:
  Holder(const Arguments& arguments, LockHandle handle, Signals& signals, bool watch_stdin)
      : handle_(std::move(handle)), signals_(signals), watch_stdin_(watch_stdin) {
    if (arguments.hold_for) until_ = BoottimeClock::now() + *arguments.hold_for;
  }

  int hold() {
    handle_.on_state([changes = changes_](HandleState state, LossReason) { changes->push(state); });
    print(HandleState::held);
    while (!lost_ && output_error_ == 0) {
      const auto timeout = until_ ? std::optional<Duration>(std::max<Duration>(
                                        *until_ - BoottimeClock::now(), Duration::zero()))
                                  : std::nullopt;
      wait_for({signals_.descriptor(), changes_->descriptor(), stdin_to_watch()}, timeout,
               STDOUT_FILENO);
      report_changes();
      if (lost_ || is_over()) break;
      if (!program::output_has_reader()) output_error_ = EPIPE;
    }
    return give_back();
  }

 private:
  /// In the background of a terminal, reading it would stop us: somebody else is typing there.
  int stdin_to_watch() const noexcept {
    if (!watch_stdin_) return -1;
    const bool background = ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) != ::getpgrp();
    return background ? -1 : STDIN_FILENO;
  }

  // Asks the handle itself first: after a stop, a change of before it may be in the queue, and
  // `lost` must be told before anything else.
  void report_changes() {
    const auto changes = changes_->take();
    if (handle_.state() == HandleState::lost) {
      print(HandleState::lost);
      lost_ = true;
      return;
    }
    for (const HandleState state : changes) {
      if (state == HandleState::held || state == HandleState::suspect) print(state);
    }
  }

  bool is_over() {
    if (until_ && BoottimeClock::now() >= *until_) return true;
    while (const auto signal = signals_.next()) {
      if (signal->number != SIGCONT) return true;
    }
    return stdin_to_watch() >= 0 && stdin_ended();
  }

  static bool stdin_ended() {
    pollfd polled{STDIN_FILENO, POLLIN, 0};
    while (::poll(&polled, 1, 0) > 0) {
      std::array<char, 4096> ignored{};
      const ssize_t got = ::read(STDIN_FILENO, ignored.data(), ignored.size());
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return true;
    }
    return false;
  }

  /// A line that cannot be written ends the hold: the lock serves no reader any more.
  void tell(const HoldEvent& event) {
    try {
      print_line(to_json(event));
    } catch (const OutputFailed& failed) {
      output_error_ = failed.error;
    }
  }

  void print(HandleState state) {
    HoldEvent event;
    event.state = state;
    event.reason = handle_.loss_reason();
    event.name = handle_.name();
    event.store = handle_.store();
    event.token = handle_.token();
    event.sequencer = handle_.sequencer();
    event.permits = handle_.permits();
    event.remaining = handle_.remaining();
    event.broken_by = handle_.broken_by();
    tell(event);
  }

  /// Throws OutputFailed if the lock was released and its reader has not got all events.
  int give_back() {
    HoldEvent event;
    event.name = handle_.name();
    event.store = handle_.store();
    event.token = handle_.token();
    event.sequencer = handle_.sequencer();
    event.permits = handle_.permits();
    const error_code error = handle_.release();
    if (error == errc::lock_lost && !lost_) {
      // Nobody had told us yet: the store did, when asked to let go.
      event.state = HandleState::lost;
      event.reason = LossReason::removed;
      tell(event);
      lost_ = true;
    }
    if (lost_) return status(Exit::lost);
    if (error) {
      complain(fmt::format("{}: the release was not confirmed: {}", event.name, error.message()));
      return status(exit_of(error));
    }
    event.state = HandleState::released;
    tell(event);
    if (output_error_ == 0) output_error_ = program::output_error();
    if (output_error_ != 0) throw OutputFailed{output_error_};
    return status(Exit::ok);
  }

  LockHandle handle_;
  Signals& signals_;
  const bool watch_stdin_;
  std::optional<TimePoint> until_;
  std::shared_ptr<Changes> changes_ = std::make_shared<Changes>();
  bool lost_ = false;
  int output_error_ = 0;  ///< errno
};

}  // namespace

int hold(const Arguments& arguments, bool stdin_ends_it) {
  Signals signals({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCONT});
  Config config = load_config(arguments);
  const auto id = lock_id(config, arguments.name);
  LockManager locks = open_manager(arguments, std::move(config));
  if (const auto outer = outer_hold(locks, id, arguments)) return refuse_nested(*outer, arguments);
  auto [handle, failed] = acquire(locks, arguments, signals);
  if (!handle) return failed;
  if (arguments.exports) return hold_export(locks, arguments, std::move(handle), signals);
  return Holder(arguments, std::move(handle), signals, stdin_ends_it).hold();
}

}  // namespace dlock::cli

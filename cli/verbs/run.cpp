// SPDX-License-Identifier: Apache-2.0
//
// `dlock run`: a command under a lock. Nothing of ours on standard output.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>

#include "cli/acquire.hpp"
#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/process/child.hpp"
#include "cli/process/loss_policy.hpp"
#include "cli/process/nesting.hpp"
#include "cli/process/process_tree.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/spi/claim.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::complain_json;
using program::Exit;
using program::printable;
using program::ReceivedSignal;
using program::signal_status;
using program::Signals;
using program::status;
using program::warn;

namespace {

using namespace std::chrono_literals;

/// The command while it runs: forwards signals, watches the lock, waits for its end.
class Supervisor {
 public:
  Supervisor(const Arguments& arguments, LockHandle& handle, Signals& signals, pid_t child)
      : arguments_(arguments),
        handle_(handle),
        signals_(signals),
        child_(child),
        policy_(arguments.on_lost, arguments.kill_after) {
    handle_.on_state([wake = wake_](HandleState, LossReason) { wake->notify(); });
  }

  /// The exit status of dlock, as far as the command decides it.
  int wait() {
    while (true) {
      const auto ask_again_in = watch_lock();
      wait_for({signals_.descriptor(), wake_->descriptor()}, ask_again_in);
      wake_->clear();
      while (const auto signal = signals_.next()) forward(*signal);
      if (const auto status = reap()) {
        // What it left behind must not go on without the lock.
        if (policy_.was_lost() && arguments_.on_lost == OnLost::terminate) {
          signal_descendants(SIGKILL);
        }
        return *status;
      }
    }
  }

  bool was_lost() const noexcept { return policy_.was_lost(); }

 private:
  std::optional<Duration> watch_lock() {
    while (true) {
      const auto state = handle_.state();
      const auto step = policy_.step(state, handle_.remaining(), BoottimeClock::now());
      act(step.action, state);
      if (step.action == LossPolicy::Action::none) return step.ask_again_in;
    }
  }

  void act(LossPolicy::Action action, HandleState state) {
    const bool lost = state == HandleState::lost;
    const auto left = handle_.remaining();
    const std::string why = lost ? fmt::format("the lock {} is lost ({})", arguments_.name,
                                               to_string(handle_.loss_reason()))
                                 : fmt::format("the lock {} could not be renewed", arguments_.name);
    switch (action) {
      case LossPolicy::Action::none:
        break;
      case LossPolicy::Action::warn_suspect:
        tell("suspect",
             fmt::format("the lock {} is suspect: its store does not answer", arguments_.name));
        break;
      case LossPolicy::Action::warn_lost:
        tell("lost", fmt::format("{}; the command goes on without it", why));
        break;
      case LossPolicy::Action::terminate: {
        // Ended first, explained then: standard error may be a pipe that blocks.
        signal_descendants(SIGTERM);
        if (lost || !left) {
          tell("terminating", fmt::format("{}: ending the command", why));
          break;
        }
        const auto margin = policy_.margin();
        tell("terminating",
             fmt::format("{} and is over in {} ms: ending the command, {} ms before that at least",
                         why, *left / 1ms, margin / 1ms),
             margin);
        break;
      }
      case LossPolicy::Action::kill:
        signal_descendants(SIGKILL);
        tell("killing", "the command did not end in time and was killed");
        break;
    }
  }

  void tell(std::string_view event, const std::string& words,
            std::optional<Duration> margin = {}) const {
    if (!arguments_.json) return complain(words);
    RunEvent told;
    told.event = event;
    told.reason = handle_.loss_reason();
    told.name = arguments_.name;
    told.token = handle_.token();
    told.remaining = handle_.remaining();
    told.margin = margin;
    complain_json(to_json(told));
  }

  void forward(const ReceivedSignal& signal) const {
    if (signal.number == SIGCHLD || signal.number == SIGCONT) return;
    // Ctrl-C has reached the command already; twice is another meaning. A hangup is not repeated to
    // everybody by the terminal.
    if (signal.from_terminal && signal.number != SIGHUP) return;
    ::kill(child_, signal.number);
  }

  /// Also orphans that we adopted, of which nobody wants to know.
  std::optional<int> reap() const {
    std::optional<int> ended;
    int raw = 0;
    while (true) {
      const pid_t pid = ::waitpid(-1, &raw, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) return ended;
      if (pid != child_) continue;
      if (WIFEXITED(raw)) ended = WEXITSTATUS(raw);
      if (WIFSIGNALED(raw)) ended = signal_status(WTERMSIG(raw));
    }
  }

  const Arguments& arguments_;
  LockHandle& handle_;
  Signals& signals_;
  const pid_t child_;
  LossPolicy policy_;
  std::shared_ptr<Wake> wake_ = std::make_shared<Wake>();
};

ChildOptions child_options(const Arguments& arguments, const LockHandle& handle,
                           const std::string& id) {
  ChildOptions options;
  options.command = arguments.command;
  options.environment = {{"DLOCK_NAME", handle.name()}, {"DLOCK_HELD_STORE", handle.store()}};
  if (handle.permits() == 0) {  // else a lock of that name is another's
    options.environment.emplace_back(kHeldVariable, held_with(id, handle.mode()));
  }
  if (const auto sequencer = handle.sequencer()) {
    options.environment.emplace_back("DLOCK_TOKEN", fmt::format("{}", sequencer->token()));
    options.environment.emplace_back("DLOCK_SEQUENCER", sequencer->to_string());
  } else {
    // An outer dlock's.
    options.removed_environment.emplace_back("DLOCK_TOKEN");
    options.removed_environment.emplace_back("DLOCK_SEQUENCER");
  }
  options.inherited_descriptor = inheritable_descriptor(handle);
  return options;
}

/// Of a script that is there: the interpreter of its first line; else empty.
std::string interpreter_of(const std::string& file) {
  std::ifstream script(file);
  std::string line;
  std::getline(script, line);
  if (!line.starts_with("#!")) return {};
  const auto first = line.find_first_not_of(" \t", 2);
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_first_of(" \t", first) - first);
}

int tell_not_started(const Arguments& arguments, int error) {
  const auto& file = arguments.command.front();
  const auto interpreter = error == ENOENT ? interpreter_of(file) : std::string();
  if (!interpreter.empty()) {
    complain(fmt::format("{}: the interpreter of its first line, {}, is not there", file,
                         printable(interpreter)));
    return status(Exit::cannot_execute);
  }
  complain(fmt::format("{}: {}", file, std::generic_category().message(error)));
  return status(error == ENOENT ? Exit::not_found : Exit::cannot_execute);
}

/// Under the lock of the `run` around us, which watches over all that it started.
int run_in_place(const Arguments& arguments, const Signals& signals) {
  signals.restore_in_child();
  auto command = pointers(arguments.command);
  ::execvp(command[0], command.data());
  return tell_not_started(arguments, errno);
}

}  // namespace

int run(const Arguments& arguments) {
  Signals signals({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD});
  Config config = load_config(arguments);
  const auto id = lock_id(config, arguments.name);
  if (arguments.nested && is_under(outer_hold(id), arguments))
    return run_in_place(arguments, signals);
  if (const auto refused = refuse_nested(config, arguments)) return *refused;
  LockManager locks = open_manager(arguments, std::move(config));
  auto [handle, failed] = acquire(locks, arguments, signals);
  if (!handle) return failed;

  adopt_orphans();
  const auto [child, error] = start_child(child_options(arguments, handle, id), signals);
  if (child < 0) {
    handle.release();
    return tell_not_started(arguments, error);
  }
  // Between the handle and what may throw: told to stop or not, the command ends before its lock is
  // given back, and until then the lock is renewed.
  CommandGuard guard(child);
  Supervisor supervisor(arguments, handle, signals, child);
  const int ended = supervisor.wait();
  guard.has_ended();

  const error_code released = handle.release();
  if (supervisor.was_lost() || released == errc::lock_lost) {
    complain(fmt::format("the lock {} was lost while the command ran (its own status: {})",
                         arguments.name, ended));
    return status(Exit::lost);
  }
  if (released) {
    warn(fmt::format("{}: the release was not confirmed: {}", arguments.name, released.message()));
  }
  return ended;
}

}  // namespace dlock::cli

// SPDX-License-Identifier: Apache-2.0
//
// `dlock run`: a command under a lock. Nothing of ours on standard output.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <mutex>
#include <optional>
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
#include "cli/process/progress_file.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/commands.hpp"
#include "cli/verbs/run_command.hpp"
#include "dlock/spi/claim.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::complain_json;
using program::ends_a_wait;
using program::Exit;
using program::printable;
using program::ReceivedSignal;
using program::signal_status;
using program::Signals;
using program::status;
using program::warn;

namespace {

using namespace std::chrono_literals;

/// A killed process ends sooner, unless the kernel cannot end it.
constexpr Duration kEndsWithin = 1s;

/// The command while it runs: forwards signals, watches the lock, waits for its end.
class Supervisor {
 public:
  /// `progress`: null, or by what the command says that it comes on.
  Supervisor(const Arguments& arguments, LockHandle& handle, Signals& signals, pid_t child,
             std::optional<TimePoint> over_at, ProgressFile* progress)
      : progress_(progress),
        arguments_(arguments),
        handle_(handle),
        signals_(signals),
        child_(child),
        policy_(arguments.on_lost, arguments.kill_after),
        over_at_(over_at) {
    handle_.on_state([wake = wake_](HandleState, LossReason) { wake->notify(); });
    if (arguments.on_revoke == 0) return;
    handle_.on_revoke([asked = asked_, wake = wake_](const Revocation& how) {
      asked->set(how);
      wake->notify();
    });
  }

  /// The exit status of dlock, as far as the command decides it.
  int wait() {
    while (true) {
      if (progress_ != nullptr && progress_->was_touched()) handle_.progress();
      const auto ask_again_in = sooner(sooner(watch_lock(), watch_time()), watch_end());
      wait_for({signals_.descriptor(), wake_->descriptor(),
                progress_ == nullptr ? -1 : progress_->descriptor()},
               ask_again_in);
      wake_->clear();
      if (const auto how = asked_->take()) give_way(*how);
      while (const auto signal = signals_.next()) forward(*signal);
      if (const auto status = reap()) {
        if (killed_at_ && *status == signal_status(SIGKILL)) {
          tell("killed", "the command did not end in time and was killed");
        }
        // Its descendants must not run without the lock.
        if (policy_.was_lost() && arguments_.on_lost == OnLost::terminate) {
          auto signalled = signal_tree(-1, SIGKILL);
          if (has_hidden_child()) signalled.has_seen_all = false;
          explain(signalled);
        }
        return *status;
      }
    }
  }

  bool was_lost() const noexcept { return policy_.was_lost(); }
  bool has_overrun() const noexcept { return has_overrun_; }
  bool was_told_to_end() const noexcept { return was_told_to_end_; }

 private:
  static std::optional<Duration> sooner(std::optional<Duration> one,
                                        std::optional<Duration> other) {
    return one && other ? std::min(*one, *other) : one ? one : other;
  }

  /// Of a scheduled run: SIGTERM when its time is over, SIGKILL --kill-after later.
  std::optional<Duration> watch_time() {
    if (!over_at_) return std::nullopt;
    const auto left = *over_at_ - BoottimeClock::now();
    if (left > Duration::zero()) return left;
    if (std::exchange(has_overrun_, true)) {
      kill_all();
      over_at_.reset();
      return std::nullopt;
    }
    const auto signalled = signal_tree(child_, SIGTERM);
    complain(
        fmt::format("{}: its time (--at-most-for) is over: ending the command", arguments_.name));
    explain(signalled);
    const Duration grace = arguments_.kill_after.value_or(5s);
    over_at_ = BoottimeClock::now() + grace;
    return grace;
  }

  void kill_all() {
    const auto signalled = signal_tree(child_, SIGKILL);
    killed_at_ = BoottimeClock::now();
    explain(signalled);
  }

  /// Reports a command that has not ended after SIGKILL, once.
  std::optional<Duration> watch_end() {
    if (!killed_at_ || has_refused_) return std::nullopt;
    const auto left = *killed_at_ + kEndsWithin - BoottimeClock::now();
    if (left > Duration::zero()) return left;
    has_refused_ = true;
    tell("not_ended",
         fmt::format("the command (pid {}) was sent SIGKILL and has not ended: it waits "
                     "for a device or a file system; dlock waits for its end",
                     child_));
    return std::nullopt;
  }

  /// Reports which processes a signal did not reach, once each.
  void explain(const Signalled& signalled) {
    if (signalled.command_error == EPERM && !std::exchange(has_refused_, true)) {
      tell("not_ended",
           fmt::format("the command (pid {}) runs as another user and cannot be ended; "
                       "dlock waits for its end",
                       child_));
    }
    if (signalled.refused && !std::exchange(has_refused_other_, true)) {
      tell("not_ended", fmt::format("process {}, started by the command, runs as another user and "
                                    "cannot be ended",
                                    *signalled.refused));
    }
    if (!signalled.has_seen_all && !std::exchange(has_hidden_, true)) {
      tell(
          "not_ended",
          "/proc does not show all processes that the command started: those that it hides run on; "
          "mount /proc, without hidepid for their users");
    }
  }

  /// What the handle was asked, for our own thread.
  class Asked {
   public:
    void set(const Revocation& how) {
      const std::lock_guard lock(mutex_);
      how_ = how;
    }
    std::optional<Revocation> take() {
      const std::lock_guard lock(mutex_);
      return std::exchange(how_, std::nullopt);
    }

   private:
    std::mutex mutex_;
    std::optional<Revocation> how_;
  };

  /// What comes of it is the command's part.
  void give_way(const Revocation& how) const {
    const auto who = how.who.empty() ? std::string("somebody") : printable(how.who);
    const auto within =
        how.within ? fmt::format(" within {}", rounded(*how.within)) : std::string();
    tell("asked", fmt::format("{} asks for the lock {}{}: telling the command", who,
                              arguments_.name, within));
    signal_command(arguments_.on_revoke);
  }

  void signal_command(int signal) const {
    if (::kill(child_, signal) == 0 || errno != EPERM) return;
    complain(fmt::format("signal {} did not reach the command (pid {}): it runs as another user",
                         signal, child_));
  }

  std::optional<Duration> watch_lock() {
    while (true) {
      const auto state = handle_.state();
      const auto step = policy_.step(state, handle_.remaining(), BoottimeClock::now());
      act(step.action, state);
      if (step.action == LossPolicy::Action::none) return step.ask_again_in;
    }
  }

  /// Of a lock that is held still. After a pause of ours it may end though its state says nothing.
  const char* why_it_ends(HandleState state) const {
    const bool progresses = progress_ != nullptr;
    if (state == HandleState::suspect) return "could not be renewed";
    if (progresses && arguments_.max_hold) return "has had its time (--max-hold), or no progress";
    if (progresses) return "is kept without progress: nobody touches the file in DLOCK_PROGRESS";
    if (arguments_.max_hold) return "has had its time (--max-hold)";
    return "could not be renewed in time, or has had its time (max_hold)";
  }

  void act(LossPolicy::Action action, HandleState state) {
    const bool lost = state == HandleState::lost;
    const auto left = handle_.remaining();
    const auto by = handle_.broken_by();
    const std::string why =
        lost ? fmt::format("the lock {} is lost ({}{})", arguments_.name,
                           to_string(handle_.loss_reason()),
                           by.empty() ? std::string() : " by " + printable(by))
             : fmt::format("the lock {} {}", arguments_.name, why_it_ends(state));
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
        // Before the message: standard error may be a full pipe.
        const auto signalled = signal_tree(child_, SIGTERM);
        if (lost || !left) {
          tell("terminating", fmt::format("{}: ending the command", why));
        } else {
          const auto margin = policy_.margin();
          tell(
              "terminating",
              fmt::format("{} and is over in {} ms: ending the command, {} ms before that at least",
                          why, *left / 1ms, margin / 1ms),
              margin);
        }
        explain(signalled);
        break;
      }
      case LossPolicy::Action::kill:
        kill_all();
        break;
    }
  }

  void tell(std::string_view event, const std::string& words,
            std::optional<Duration> margin = {}) const {
    if (!arguments_.json) return complain(words);
    RunEvent told;
    told.event = event;
    told.reason = handle_.loss_reason();
    told.broken_by = handle_.broken_by();
    told.name = arguments_.name;
    told.token = handle_.token();
    told.remaining = handle_.remaining();
    told.margin = margin;
    complain_json(to_json(told));
  }

  void forward(const ReceivedSignal& signal) {
    if (signal.number == SIGCHLD || signal.number == SIGCONT) return;
    was_told_to_end_ = was_told_to_end_ || ends_a_wait(signal.number);
    // Ctrl-C has reached the command already; twice is another meaning. A hangup is not repeated to
    // everybody by the terminal.
    if (signal.from_terminal && signal.number != SIGHUP) return;
    signal_command(signal.number);
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

  ProgressFile* const progress_;
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  const Arguments& arguments_;
  LockHandle& handle_;
  Signals& signals_;
  const pid_t child_;
  LossPolicy policy_;
  std::optional<TimePoint> over_at_;  ///< then: SIGTERM, or SIGKILL if that was sent
  std::optional<TimePoint> killed_at_;
  bool has_refused_ = false;        ///< reported: the command does not end
  bool has_refused_other_ = false;  ///< reported: a descendant does not end
  bool has_hidden_ = false;         ///< reported: /proc does not show the descendants
  bool has_overrun_ = false;
  bool was_told_to_end_ = false;
  std::shared_ptr<Wake> wake_ = std::make_shared<Wake>();
};

ChildOptions child_options(const Arguments& arguments, const LockHandle& handle,
                           const std::string& id, const ProgressFile* progress) {
  ChildOptions options;
  options.command = arguments.command;
  options.environment = {{"DLOCK_NAME", handle.name()}, {"DLOCK_HELD_STORE", handle.store()}};
  if (handle.permits() == 0) {  // else a lock of that name is another's
    options.environment.emplace_back(kHeldVariable, held_with(id, handle));
  }
  if (const auto sequencer = handle.sequencer()) {
    options.environment.emplace_back("DLOCK_TOKEN", fmt::format("{}", sequencer->token()));
    options.environment.emplace_back("DLOCK_SEQUENCER", sequencer->to_string());
  } else {
    // An outer dlock's.
    options.removed_environment.emplace_back("DLOCK_TOKEN");
    options.removed_environment.emplace_back("DLOCK_SEQUENCER");
  }
  if (progress) {
    options.environment.emplace_back("DLOCK_PROGRESS", progress->path());
  } else {
    options.removed_environment.emplace_back("DLOCK_PROGRESS");
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

// Between the handle and what may throw: told to stop or not, the command ends before its lock is
// given back, and until then the lock is renewed.
Ran run_command(const Arguments& arguments, LockHandle& handle, const std::string& id,
                Signals& signals, ProgressFile* progress, std::optional<TimePoint> over_at) {
  Ran ran;
  adopt_orphans();
  const auto [child, error] = start_child(child_options(arguments, handle, id, progress), signals);
  if (child < 0) {
    ran.status = tell_not_started(arguments, error);
    return ran;
  }
  CommandGuard guard(child);
  Supervisor supervisor(arguments, handle, signals, child, over_at, progress);
  ran.has_started = true;
  ran.status = supervisor.wait();
  guard.has_ended();
  ran.was_lost = supervisor.was_lost();
  ran.has_overrun = supervisor.has_overrun();
  ran.was_told_to_end = supervisor.was_told_to_end();
  return ran;
}

int tell_lost(const Arguments& arguments, const Ran& ran) {
  complain(fmt::format("the lock {} was lost while the command ran (its own status: {})",
                       arguments.name, ran.status));
  return status(Exit::lost);
}

int run(const Arguments& arguments) {
  Signals signals({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD});
  Config config = load_config(arguments);
  const auto id = lock_id(config, arguments.name);
  // Before it is waited for: without the file the command is not begun.
  std::optional<ProgressFile> file;
  if (arguments.progress_every) file.emplace();
  ProgressFile* const progress = file ? &*file : nullptr;
  LockManager locks = open_manager(arguments, std::move(config));
  if (const auto outer = outer_hold(locks, id, arguments)) {
    if (!arguments.nested || !is_under(*outer, arguments)) return refuse_nested(*outer, arguments);
    locks.close();
    return run_in_place(arguments, signals);
  }
  if (arguments.leader) return run_leader(arguments, locks, id, signals, progress);
  if (arguments.at_most_for) return run_scheduled(arguments, locks, id, signals);
  auto [handle, failed] = acquire(locks, arguments, signals);
  if (!handle) return failed;

  const auto ran = run_command(arguments, handle, id, signals, progress);
  const error_code released = handle.release();
  if (!ran.has_started) return ran.status;
  if (ran.was_lost || released == errc::lock_lost) return tell_lost(arguments, ran);
  if (released) {
    warn(fmt::format("{}: the release was not confirmed: {}", arguments.name, released.message()));
  }
  return ran.status;
}

}  // namespace dlock::cli

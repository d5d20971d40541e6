// SPDX-License-Identifier: Apache-2.0
//
// A child process of a test: started without a race, watched without a signal handler, and gone
// when the test is gone.
//
//   Process hold({.argv = {"dlock", "--store", url, "hold", "orders/42"}});
//   auto line = hold.read_line(within(5s));       // nullopt: end of its output, or the deadline
//   hold.close_stdin();
//   auto status = hold.wait(within(5s));          // nullopt: still running
//
// - The kernel kills the child when this process dies (parent-death signal). That signal is sent
//   when the *thread* that forked ends, so one thread that lasts as long as the process does all
//   the forking, whoever asks.
// - The child gets standard input, output and error and `keep_fds`, nothing else: libraries under
//   test open descriptors without close-on-exec. It starts with no signal blocked or ignored.
// - Standard error goes to memory that needs no reader, so a chatty child never blocks on it.
//   Standard output is a pipe that `read_line` and `wait` read.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testkit/await.hpp"

namespace dlock::testkit {

struct ProcessOptions {
  enum class Input { pipe, null, closed };
  enum class Output { pipe, null, inherit };

  std::vector<std::string> argv;                           ///< argv[0] is searched in PATH
  std::vector<std::pair<std::string, std::string>> env{};  ///< added to ours, or replacing
  std::vector<std::string> unset_env{};                    ///< removed from ours
  std::filesystem::path working_directory{};               ///< empty: ours
  Input stdin_from = Input::pipe;
  Output stdout_to = Output::pipe;
  std::filesystem::path log_file{};  ///< both outputs appended to it instead
  std::vector<int> keep_fds{};       ///< inherited under the same numbers
  bool die_with_parent = true;
  bool new_session = false;  ///< setsid: no terminal, own group
};

/// How a process ended: by exit (code) or by a signal (code 0).
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool success() const { return code == 0 && signal == 0; }
  /// As a shell's `$?`: 128 + N when signal N ended it.
  int shell_status() const { return signal != 0 ? 128 + signal : code; }
};

/// Distinct objects are independent. Of a shared one, `pid`, `signal`, `running`, `wait` (one
/// thread at a time) and `collected_stderr` may be used from several threads.
class Process {
 public:
  /// Throws std::system_error when the program cannot be run (errno of exec).
  explicit Process(ProcessOptions options);
  /// Kills the child (unless detached) and reaps it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();

  /// Sends a signal; false when the process has ended already (never hits a reused pid).
  bool signal(int number);
  /// SIGSTOP, and waits until every thread of the child has stopped; false when it has ended.
  bool pause();
  /// SIGCONT.
  bool resume();
  /// SIGKILL and reap.
  ExitStatus kill_and_wait();
  /// Waits for the end, reading standard output meanwhile; nullopt: still running at the deadline.
  std::optional<ExitStatus> wait(Deadline deadline);
  /// The child stays alive after this object and this process.
  void detach() { detached_ = true; }

  /// Writes to standard input; false when nobody reads it any more.
  bool write(std::string_view bytes);
  void close_stdin();
  /// Closes our end of its standard output: its next write meets a broken pipe.
  void close_stdout();

  /// The next line of standard output without its newline; a last one without newline counts.
  /// nullopt: end of output, or the deadline.
  std::optional<std::string> read_line(Deadline deadline);
  /// Everything it wrote to standard output and nobody has read as a line yet; with `wait` before
  /// it, everything up to its end.
  std::string unread_stdout();
  /// What it has written to standard error so far.
  std::string collected_stderr() const;
  /// Waits until standard error holds `text`.
  bool stderr_shows(std::string_view text, Deadline deadline) const;

 private:
  bool reap_if_ended();
  bool read_some();
  std::optional<std::string> take_line();

  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int stdin_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  bool detached_ = false;
  std::string unread_;
  mutable std::mutex mutex_;  // of status_: a signal must not race with reaping
  std::optional<ExitStatus> status_;
};

/// Runs a program to its end with the given standard input; throws std::runtime_error at the
/// deadline, having killed it.
struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
};
Finished run(ProcessOptions options, std::string_view input = {}, Deadline deadline = patience());

/// When a process started, in clock ticks since boot: with its pid, the identity of a process.
/// nullopt: no such process (or it is a zombie).
std::optional<unsigned long long> process_start_time(pid_t pid);

}  // namespace dlock::testkit

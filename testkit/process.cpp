// SPDX-License-Identifier: Apache-2.0
#include "testkit/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "testkit/spawn.hpp"

extern char** environ;

namespace dlock::testkit {

namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// A descriptor that closes itself; above 2, so that putting it in a standard place never clashes.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {
    if (fd_ < 0 || fd_ > 2) return;
    const int higher = ::fcntl(fd_, F_DUPFD_CLOEXEC, 3);
    ::close(fd_);
    fd_ = higher;
  }
  ~Fd() { close_fd(fd_); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int give_up() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe2");
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd open_or_fail(const std::filesystem::path& file, int flags) {
  Fd fd(::open(file.c_str(), flags | O_CLOEXEC, 0644));
  if (fd.get() < 0) fail(errno, "cannot open " + file.string());
  return fd;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::string candidate = folders.substr(begin, end - begin) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  fail(ENOENT, "no program " + name + " in PATH");
}

std::vector<std::string> environment(const ProcessOptions& options) {
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  const auto replaced = [&](const std::string& name) {
    return std::any_of(options.env.begin(), options.env.end(),
                       [&](const auto& pair) { return pair.first == name; }) ||
           std::find(options.unset_env.begin(), options.unset_env.end(), name) !=
               options.unset_env.end();
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!replaced(name_of(*entry))) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.env) result.emplace_back(name).append("=").append(value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// Waits until one of the descriptors is ready or the deadline has passed.
void wait_for(std::initializer_list<pollfd> fds, Deadline deadline) {
  std::vector<pollfd> set(fds);
  const auto left = std::max(deadline - Clock::now(), Clock::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec timeout{seconds.count(), (left - seconds).count()};
  ::ppoll(set.data(), set.size(), &timeout, nullptr);
}

}  // namespace

Process::Process(ProcessOptions options) {
  detail::Launch launch;
  launch.program = find_program(options.argv.at(0));
  launch.argument_strings = options.argv;
  launch.environment_strings = environment(options);
  launch.arguments = pointers(launch.argument_strings);
  launch.environment = pointers(launch.environment_strings);
  launch.working_directory = options.working_directory.string();
  launch.keep_fds = options.keep_fds;
  launch.die_with_parent = options.die_with_parent;
  launch.new_session = options.new_session;
  launch.parent = ::getpid();

  using Input = ProcessOptions::Input;
  using Output = ProcessOptions::Output;
  const Fd null = open_or_fail("/dev/null", O_RDWR);
  Pipe input;
  Pipe output;
  Fd log;
  Fd errors;
  if (options.stdin_from == Input::pipe) input = make_pipe();
  launch.standard[0] = options.stdin_from == Input::pipe   ? input.read.get()
                       : options.stdin_from == Input::null ? null.get()
                                                           : detail::closed;
  if (!options.log_file.empty()) {
    log = open_or_fail(options.log_file, O_WRONLY | O_CREAT | O_APPEND);
    launch.standard[1] = launch.standard[2] = log.get();
  } else {
    if (options.stdout_to == Output::pipe) output = make_pipe();
    launch.standard[1] = options.stdout_to == Output::pipe   ? output.write.get()
                         : options.stdout_to == Output::null ? null.get()
                                                             : detail::inherited;
    errors = Fd(::memfd_create("stderr", MFD_CLOEXEC));
    if (errors.get() < 0) fail(errno, "memfd_create");
    // Its threads write at once, and Linux keeps the offset of files of a file system alone.
    if (::fcntl(errors.get(), F_SETFL, O_APPEND) != 0) fail(errno, "fcntl");
    launch.standard[2] = errors.get();
  }

  Pipe exec_error = make_pipe();
  launch.error_pipe = exec_error.write.get();
  pid_ = detail::spawn(launch);
  exec_error.write = Fd();
  int error = 0;
  if (::read(exec_error.read.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid_, nullptr, 0);
    fail(error, "cannot run " + launch.program);
  }
  // Not through <sys/pidfd.h>: glibc 2.36 declares it without C linkage.
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  stdin_ = input.write.give_up();
  stdout_ = output.read.give_up();
  stderr_ = errors.give_up();
  if (stdout_ >= 0) ::fcntl(stdout_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (!detached_) kill_and_wait();
  close_fd(pid_fd_);
  close_fd(stdin_);
  close_fd(stdout_);
  close_fd(stderr_);
}

bool Process::reap_if_ended() {
  const std::lock_guard lock(mutex_);
  if (status_) return true;
  int raw = 0;
  if (::waitpid(pid_, &raw, WNOHANG) != pid_) return false;
  status_ = WIFSIGNALED(raw) ? ExitStatus{0, WTERMSIG(raw)} : ExitStatus{WEXITSTATUS(raw), 0};
  return true;
}

bool Process::running() { return !reap_if_ended(); }

bool Process::signal(int number) {
  // Not reaped yet means that the pid cannot have been given to anybody else.
  const std::lock_guard lock(mutex_);
  return !status_ && ::kill(pid_, number) == 0;
}

bool Process::pause() {
  if (!signal(SIGSTOP)) return false;
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  while (::waitid(P_PID, id, &info, WSTOPPED | WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return false;
  }
  if (info.si_code != CLD_STOPPED) return false;
  ::waitid(P_PID, id, &info, WSTOPPED | WNOHANG);
  return true;
}

bool Process::resume() { return signal(SIGCONT); }

ExitStatus Process::kill_and_wait() {
  signal(SIGKILL);
  while (!reap_if_ended()) {
    wait_for({pollfd{pid_fd_, POLLIN, 0}}, within(std::chrono::milliseconds(100)));
  }
  return *status_;
}

std::optional<ExitStatus> Process::wait(Deadline deadline) {
  while (true) {
    const bool ended = reap_if_ended();
    while (read_some()) {
    }
    if (ended) return status_;
    if (Clock::now() >= deadline) return std::nullopt;
    wait_for({pollfd{pid_fd_, POLLIN, 0}, pollfd{stdout_, POLLIN, 0}}, deadline);
  }
}

bool Process::write(std::string_view bytes) {
  sigset_t pipe_signal, before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  bool ok = true;
  while (ok && !bytes.empty()) {
    const ssize_t written = ::write(stdin_, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    ok = written > 0 || (written < 0 && errno == EINTR);
  }
  if (!ok) {
    const timespec at_once{};
    ::sigtimedwait(&pipe_signal, nullptr, &at_once);  // the SIGPIPE of our own write
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ok;
}

void Process::close_stdin() { close_fd(stdin_); }

void Process::close_stdout() { close_fd(stdout_); }

// True when there may be more to read at once.
bool Process::read_some() {
  if (stdout_ < 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(stdout_, buffer.data(), buffer.size());
  if (got > 0) unread_.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) close_fd(stdout_);
  return got > 0;
}

std::optional<std::string> Process::take_line() {
  const std::size_t end = unread_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::optional<std::string> Process::read_line(Deadline deadline) {
  while (true) {
    if (auto line = take_line()) return line;
    if (stdout_ < 0) {
      if (unread_.empty()) return std::nullopt;
      return std::exchange(unread_, {});
    }
    if (read_some()) continue;
    if (Clock::now() >= deadline) return std::nullopt;
    if (stdout_ >= 0) wait_for({pollfd{stdout_, POLLIN, 0}}, deadline);
  }
}

std::string Process::unread_stdout() {
  while (read_some()) {
  }
  return std::exchange(unread_, {});
}

std::string Process::collected_stderr() const {
  std::string result;
  std::array<char, 4096> buffer;
  while (stderr_ >= 0) {
    const ssize_t got =
        ::pread(stderr_, buffer.data(), buffer.size(), static_cast<off_t>(result.size()));
    if (got <= 0) break;
    result.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return result;
}

bool Process::stderr_shows(std::string_view text, Deadline deadline) const {
  return eventually(deadline, [&] { return collected_stderr().find(text) != std::string::npos; });
}

Finished run(ProcessOptions options, std::string_view input, Deadline deadline) {
  const std::string program = options.argv.at(0);
  Process process(std::move(options));
  process.write(input);
  process.close_stdin();
  const auto status = process.wait(deadline);
  if (!status) {
    process.kill_and_wait();
    throw std::runtime_error(program +
                             " did not end in time; it said: " + process.collected_stderr());
  }
  return {*status, process.unread_stdout(), process.collected_stderr()};
}

std::optional<unsigned long long> process_start_time(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return std::nullopt;
  // The program's name is in brackets and may hold anything; the state follows the last bracket,
  // and the start time is the 22nd field, counting the state as the third.
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos || line.size() < bracket + 3) return std::nullopt;
  if (line[bracket + 2] == 'Z' || line[bracket + 2] == 'X') return std::nullopt;
  std::size_t begin = bracket + 2;
  for (int field = 3; field < 22; ++field) {
    begin = line.find(' ', begin);
    if (begin == std::string::npos) return std::nullopt;
    ++begin;
  }
  return std::strtoull(line.c_str() + begin, nullptr, 10);
}

}  // namespace dlock::testkit

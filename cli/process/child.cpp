// SPDX-License-Identifier: Apache-2.0
#include "cli/process/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <numeric>

namespace dlock::cli {

using program::Signals;

namespace {

/// Sorted.
std::vector<unsigned>& open_at_start() {
  static std::vector<unsigned> descriptors;
  return descriptors;
}

std::vector<std::string> environment_of(const ChildOptions& options) {
  const auto is_ours = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('='));
    return std::find(options.removed_environment.begin(), options.removed_environment.end(),
                     name) != options.removed_environment.end() ||
           std::any_of(options.environment.begin(), options.environment.end(),
                       [&](const auto& pair) { return pair.first == name; });
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_ours(*entry)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) {
    result.push_back(fmt::format("{}={}", name, value));
  }
  return result;
}

/// Everything that we opened is closed by exec, also what a library opened without close-on-exec.
/// Async-signal-safe.
void hide_our_descriptors(const std::vector<unsigned>& passed_on) noexcept {
  unsigned next = 3;
  for (const unsigned descriptor : passed_on) {
    if (descriptor < next) continue;
    if (descriptor > next) ::close_range(next, descriptor - 1, CLOSE_RANGE_CLOEXEC);
    next = descriptor + 1;
  }
  ::close_range(next, ~0U, CLOSE_RANGE_CLOEXEC);
}

struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<unsigned> passed_on;
  int report = -1;  ///< where exec's errno goes
  pid_t parent = -1;
};

/// Between fork and exec in a program with threads: async-signal-safe calls only.
[[noreturn]] void become_command(const Prepared& prepared, const Signals& signals) noexcept {
  // Our death is its death: without dlock nobody would renew the lock.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);  // it died before we said so
  signals.restore_in_child();
  hide_our_descriptors(prepared.passed_on);
  ::execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(prepared.report, &error, sizeof error);
  ::_exit(127);
}

/// 0 when exec succeeded (the pipe was closed by it).
int read_report(int descriptor) noexcept {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(descriptor, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  // exec does not write to them; its interface is older than const.
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

void remember_open_descriptors() {
  auto& descriptors = open_at_start();
  std::error_code error;
  std::vector<unsigned> seen;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename().string();
    unsigned number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    seen.push_back(number);
  }
  if (error) {  // /proc is not mounted
    constexpr unsigned kMost = 65'536;
    seen.resize(std::min(kMost, static_cast<unsigned>(::getdtablesize())));
    std::iota(seen.begin(), seen.end(), 0U);
  }
  for (const unsigned number : seen) {  // without the directory's own, closed by now
    if (::fcntl(static_cast<int>(number), F_GETFD) >= 0) descriptors.push_back(number);
  }
  std::sort(descriptors.begin(), descriptors.end());
}

StartedChild start_child(const ChildOptions& options, const Signals& signals) {
  const std::vector<std::string> environment = environment_of(options);
  Prepared prepared;
  prepared.arguments = pointers(options.command);
  prepared.environment = pointers(environment);
  prepared.passed_on = open_at_start();
  prepared.parent = ::getpid();

  // A duplicate: dlock's own is closed in every forked child, so that none keeps the lock by
  // chance.
  int kept = -1;
  if (options.inherited_descriptor >= 0) {
    kept = ::fcntl(options.inherited_descriptor, F_DUPFD, 3);
    if (kept < 0) return {-1, errno};
    const auto number = static_cast<unsigned>(kept);
    prepared.passed_on.insert(
        std::lower_bound(prepared.passed_on.begin(), prepared.passed_on.end(), number), number);
  }
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    if (kept >= 0) ::close(kept);
    return {-1, error};
  }
  prepared.report = report[1];

  const pid_t pid = ::fork();
  const int fork_error = errno;
  if (pid == 0) become_command(prepared, signals);
  if (kept >= 0) ::close(kept);
  ::close(report[1]);
  const int error = pid < 0 ? fork_error : read_report(report[0]);
  ::close(report[0]);
  if (error == 0) return {pid, 0};
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return {-1, error};
}

}  // namespace dlock::cli

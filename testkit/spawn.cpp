// SPDX-License-Identifier: Apache-2.0
#include "testkit/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <future>
#include <mutex>
#include <queue>
#include <system_error>
#include <thread>
#include <utility>

namespace dlock::testkit::detail {

namespace {

[[noreturn]] void give_up(const Launch& launch) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(launch.error_pipe, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void become_program(const Launch& launch) {
  if (launch.new_session) ::setsid();
  if (launch.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launch.parent) ::_exit(127);  // it died before the line above
  }
  if (!launch.working_directory.empty() && ::chdir(launch.working_directory.c_str()) != 0) {
    give_up(launch);
  }
  for (int target = 0; target < 3; ++target) {
    const int source = launch.standard[static_cast<std::size_t>(target)];
    if (source == closed) ::close(target);
    if (source >= 0 && ::dup2(source, target) < 0) give_up(launch);
  }
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int fd = 3; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // before Linux 5.11
  }
  for (const int fd : launch.keep_fds) ::fcntl(fd, F_SETFD, 0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(launch.program.c_str(), launch.arguments.data(), launch.environment.data());
  give_up(launch);
}

pid_t fork_program(const Launch& launch) {
  // No handler of ours may run in the child before it has reset them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become_program(launch);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw std::system_error(error, std::generic_category(), "fork");
  return pid;
}

// The one thread that forks. It is never destroyed: statics of a test may still start processes
// while the program exits.
class Spawner {
 public:
  static pid_t spawn(const Launch& launch) {
    static std::mutex guard;
    static Spawner* current = nullptr;
    Spawner* spawner = nullptr;
    {
      const std::lock_guard lock(guard);
      // In a forked child of the test there is no such thread: it gets its own.
      if (current == nullptr || current->owner_ != ::getpid()) current = new Spawner;
      spawner = current;
    }
    return spawner->submit(launch);
  }

 private:
  Spawner() : owner_(::getpid()) {
    std::thread([this] { loop(); }).detach();
  }

  pid_t submit(const Launch& launch) {
    std::packaged_task<pid_t()> task([&launch] { return fork_program(launch); });
    std::future<pid_t> result = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push(std::move(task));
    }
    wake_.notify_one();
    return result.get();
  }

  void loop() {
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<pid_t()> task = std::move(tasks_.front());
      tasks_.pop();
      lock.unlock();
      task();
    }
  }

  const pid_t owner_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::queue<std::packaged_task<pid_t()>> tasks_;
};

}  // namespace

pid_t spawn(const Launch& launch) { return Spawner::spawn(launch); }

}  // namespace dlock::testkit::detail

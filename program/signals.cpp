// SPDX-License-Identifier: Apache-2.0
#include "program/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dlock::program {

namespace {

bool broken_pipes_were_ignored = false;

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void set_default(int number) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Signals::Signals(std::initializer_list<int> numbers) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : numbers) {
    // Who ignores SIGCHLD has his children reaped by the kernel, and never learns their status.
    if (number == SIGCHLD) set_default(number);
    // Linux queues a blocked signal even if it is ignored.
    if (!is_ignored(number)) sigaddset(&wanted, number);
  }
  const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &original_);
  if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_sigmask");
  descriptor_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

Signals::~Signals() { ::close(descriptor_); }

std::optional<ReceivedSignal> Signals::next() noexcept {
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void Signals::restore_in_child() const noexcept {
  if (!broken_pipes_were_ignored) set_default(SIGPIPE);
  ::sigprocmask(SIG_SETMASK, &original_, nullptr);
}

bool ends_a_wait(int signal) noexcept {
  return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM ||
         signal == SIGUSR1 || signal == SIGUSR2;
}

void ignore_broken_pipes() noexcept {
  broken_pipes_were_ignored = is_ignored(SIGPIPE);
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace dlock::program

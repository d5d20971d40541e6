// SPDX-License-Identifier: Apache-2.0
//
// A command for `dlock run` that says when it was told to end: prints `ready`, waits for SIGTERM
// and prints the moment, in nanoseconds of CLOCK_BOOTTIME, which all processes of a machine share.
#include <csignal>
#include <cstdio>
#include <ctime>

int main() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  int number = 0;
  sigwait(&wanted, &number);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/interrupt.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "testkit/await.hpp"

namespace dlock::compare {

Interrupt::Interrupt(int descriptor, std::function<void()> last_resort)
    : last_resort_(std::move(last_resort)),
      watcher_([this, descriptor](const std::stop_token& stop) { watch(stop, descriptor); }) {}

Interrupt::~Interrupt() = default;

void Interrupt::watch(const std::stop_token& stop, int descriptor) {
  constexpr auto patience = std::chrono::seconds(10);
  testkit::Deadline give_up = testkit::Deadline::max();
  while (!stop.stop_requested()) {
    pollfd polled{descriptor, POLLIN, 0};
    ::poll(&polled, 1, 50);
    signalfd_siginfo info{};
    const bool came = (polled.revents & POLLIN) != 0 &&
                      ::read(descriptor, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    if ((came && signal_.load() != 0) || testkit::Clock::now() >= give_up) {
      last_resort_();
      ::_exit(128 + signal_.load());
    }
    if (came) {
      signal_ = static_cast<int>(info.ssi_signo);
      give_up = testkit::within(patience);
    }
  }
}

void Interrupt::sleep(std::chrono::milliseconds duration) const {
  const auto end = testkit::within(duration);
  while (testkit::Clock::now() < end) {
    check();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - testkit::Clock::now());
    std::this_thread::sleep_for(
        std::min(left + std::chrono::milliseconds(1), std::chrono::milliseconds(20)));
  }
  check();
}

}  // namespace dlock::compare

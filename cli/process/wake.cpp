// SPDX-License-Identifier: Apache-2.0
#include "cli/process/wake.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace dlock::cli {

Wake::Wake() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Wake::~Wake() { ::close(descriptor_); }

void Wake::notify() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

void Wake::clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof count);
}

void wait_for(std::initializer_list<int> descriptors,
              std::optional<std::chrono::nanoseconds> timeout, int written) noexcept {
  using std::chrono::milliseconds;
  std::array<pollfd, 8> polled{};
  nfds_t count = 0;
  for (const int descriptor : descriptors) polled[count++] = {descriptor, POLLIN, 0};
  polled[count++] = {written, 0, 0};  // POLLERR and POLLHUP need not be asked for
  int timeout_ms = -1;
  if (timeout) {
    // Rounded up, or the last millisecond would be spent spinning.
    const auto ms = std::chrono::ceil<milliseconds>(*timeout).count();
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(ms, 0, 3'600'000));
  }
  ::poll(polled.data(), count, timeout_ms);
}

}  // namespace dlock::cli

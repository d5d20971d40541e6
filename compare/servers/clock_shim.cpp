// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: the wall clock is as many seconds off as the file DLOCK_CLOCK_OFFSET says, read
// at each look, so that a running server's clock can be stepped. System calls only: allocators look
// at the clock before anything is set up (libfaketime and Debian's redis-server do not get on).
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace {

long offset() {
  const char* file = std::getenv("DLOCK_CLOCK_OFFSET");
  if (file == nullptr) return 0;
  const auto descriptor = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, file, O_RDONLY, 0));
  if (descriptor < 0) return 0;
  std::array<char, 16> text{};
  const long size = ::syscall(SYS_read, descriptor, text.data(), text.size());
  ::syscall(SYS_close, descriptor);
  long value = 0;
  for (long i = 0; i < size && text[static_cast<std::size_t>(i)] >= '0'; ++i) {
    value = value * 10 + (text[static_cast<std::size_t>(i)] - '0');
  }
  return value;
}

int look(clockid_t clock, timespec* result) {
  const auto status = static_cast<int>(::syscall(SYS_clock_gettime, clock, result));
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    result->tv_sec += offset();
  }
  return status;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* result) noexcept {
  return look(clock, result);
}

extern "C" int gettimeofday(timeval* result, void*) noexcept {
  timespec now{};
  const int status = look(CLOCK_REALTIME, &now);
  result->tv_sec = now.tv_sec;
  result->tv_usec = now.tv_nsec / 1000;
  return status;
}

extern "C" time_t time(time_t* result) noexcept {
  timespec now{};
  look(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: the wall clock goes wrong by as many nanoseconds as the file DLOCK_TEST_CLOCK
// says (eight bytes, mapped, so that it may be set while the process runs). Clocks that nobody can
// set are left alone. The kernel is asked directly: looking for the real function from inside a
// clock call hangs programs whose memory allocator reads the clock.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

std::atomic<const std::int64_t*> wrong_by{nullptr};

__attribute__((constructor)) void map_the_file() {
  const char* const file = std::getenv("DLOCK_TEST_CLOCK");
  if (file == nullptr) return;
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* const at = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at != MAP_FAILED) wrong_by = static_cast<const std::int64_t*>(at);
}

timespec wall_clock(clockid_t clock) {
  timespec now{};
  ::syscall(SYS_clock_gettime, clock, &now);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t* const offset = wrong_by;
  if (offset == nullptr) return now;
  const std::int64_t total =
      now.tv_sec * kSecond + now.tv_nsec + *static_cast<const volatile std::int64_t*>(offset);
  return {total / kSecond, total % kSecond};
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  }
  *out = wall_clock(clock);
  return 0;
}

extern "C" int gettimeofday(timeval* out, void*) noexcept {
  const timespec now = wall_clock(CLOCK_REALTIME);
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  const time_t now = wall_clock(CLOCK_REALTIME).tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

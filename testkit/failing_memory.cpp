// SPDX-License-Identifier: Apache-2.0
#include "testkit/failing_memory.hpp"

#include <dirent.h>
#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

// glibc's own, below whatever a program puts before malloc().
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* old, std::size_t size);               // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT
}

namespace dlock::testkit {
namespace {

std::atomic<bool> armed{false};
std::atomic<bool> c_too{false};
std::atomic<std::uint64_t> counted{0};
std::atomic<std::uint64_t> failing{0};
std::atomic<bool> failed{false};
std::atomic<bool> shown{false};

constexpr std::size_t kMostSpared = 64;
std::array<std::atomic<pid_t>, kMostSpared> spared_threads{};

thread_local int spared = 0;
thread_local pid_t my_thread = 0;
thread_local bool my_thread_is_spared = false;

bool is_spared() noexcept {
  if (spared > 0) return true;
  if (my_thread == 0) {
    my_thread = ::gettid();
    for (const auto& one : spared_threads) {
      if (one.load(std::memory_order_relaxed) == my_thread) my_thread_is_spared = true;
    }
  }
  return my_thread_is_spared;
}

void show(const char* what) noexcept {
  ++spared;
  std::array<void*, 48> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  [[maybe_unused]] const auto written = ::write(2, what, std::strlen(what));
  ::backtrace_symbols_fd(frames.data(), count, 2);
  --spared;
}

bool fails(bool cpp) noexcept {
  if (!armed.load(std::memory_order_relaxed)) return false;
  if (!cpp && !c_too.load(std::memory_order_relaxed)) return false;
  if (is_spared()) return false;
  if (counted.fetch_add(1) + 1 != failing.load(std::memory_order_relaxed)) return false;
  failed = true;
  if (shown) show("the allocation that failed:\n");
  return true;
}

void on_abort(int) {
  armed = false;
  show("aborted:\n");
  std::signal(SIGABRT, SIG_DFL);
  ::raise(SIGABRT);
}

void* take(std::size_t size, std::size_t alignment) {
  if (fails(true)) throw std::bad_alloc();
  void* const got = alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

}  // namespace

void arm_memory(Memory which, std::uint64_t n) noexcept {
  c_too = which == Memory::all;
  counted = 0;
  failing = n;
  failed = false;
  armed = true;
}

std::uint64_t disarm_memory() noexcept {
  armed = false;
  return counted;
}

bool memory_has_failed() noexcept { return failed; }

void spare_present_threads() noexcept {
  for (auto& one : spared_threads) one = 0;
  auto* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return;
  std::size_t at = 0;
  while (const auto* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (thread != 0 && thread != ::gettid() && at < kMostSpared) spared_threads[at++] = thread;
  }
  ::closedir(folder);
}

Spared::Spared() noexcept { ++spared; }
Spared::~Spared() { --spared; }

void show_failures() noexcept {
  std::array<void*, 2> frames{};
  ::backtrace(frames.data(), static_cast<int>(frames.size()));  // loads what it needs
  std::signal(SIGABRT, on_abort);
  shown = true;
}

}  // namespace dlock::testkit

using dlock::testkit::fails;
using dlock::testkit::take;

void* operator new(std::size_t size) { return take(size, 0); }
void* operator new[](std::size_t size) { return take(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails(true) ? nullptr : __libc_malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return fails(true) ? nullptr : __libc_malloc(size);
}
void operator delete(void* old) noexcept { std::free(old); }
void operator delete[](void* old) noexcept { std::free(old); }
void operator delete(void* old, std::size_t) noexcept { std::free(old); }
void operator delete[](void* old, std::size_t) noexcept { std::free(old); }
void operator delete(void* old, std::align_val_t) noexcept { std::free(old); }
void operator delete[](void* old, std::align_val_t) noexcept { std::free(old); }
void operator delete(void* old, std::size_t, std::align_val_t) noexcept { std::free(old); }
void operator delete[](void* old, std::size_t, std::align_val_t) noexcept { std::free(old); }
void operator delete(void* old, const std::nothrow_t&) noexcept { std::free(old); }
void operator delete[](void* old, const std::nothrow_t&) noexcept { std::free(old); }

extern "C" {

void* malloc(std::size_t size) {
  if (!fails(false)) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

void* calloc(std::size_t count, std::size_t size) {
  if (!fails(false)) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* old, std::size_t size) {
  if (!fails(false)) return __libc_realloc(old, size);
  errno = ENOMEM;
  return nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (!fails(true)) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

}  // extern "C"

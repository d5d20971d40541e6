// SPDX-License-Identifier: Apache-2.0
#include "testkit/no_threads.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace dlock::testkit {
namespace {

std::atomic<int> refusing{0};
std::atomic<std::uint64_t> asked_for{0};
std::atomic<std::uint64_t> refused_one{0};

}  // namespace

std::uint64_t threads_asked_for() noexcept { return asked_for; }

NoThreads::NoThreads() noexcept { ++refusing; }
NoThreads::~NoThreads() { --refusing; }

void refuse_thread(std::uint64_t n) noexcept { refused_one = n == 0 ? 0 : asked_for + n; }

}  // namespace dlock::testkit

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  using namespace dlock::testkit;
  using Create = decltype(&pthread_create);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym() has no other type
  static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  const auto number = ++asked_for;
  if (refusing > 0 || number == refused_one) return EAGAIN;
  return real(thread, attributes, run, argument);
}

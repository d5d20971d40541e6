// SPDX-License-Identifier: Apache-2.0
//
// synchronized: runs a callable under a lock, named by default after the calling function.
//
//   void Billing::close_month() {
//     dlock::synchronized(locks, [&] { ... });   // the lock "Billing::close_month"
//   }
#pragma once

#include <string>
#include <utility>
#include <version>
#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

#include "dlock/lock_manager.hpp"
#include "dlock/mutex.hpp"

namespace dlock::inline v0 {

namespace detail {
/// `void ns::Type::f(int) const` -> `ns::Type::f`. Throws LockError{invalid_name} for a lambda, a
/// template or an anonymous namespace: their names differ between compilers and builds.
std::string lock_name_of(const char* pretty_function);

/// Unlocks when the work is over, also by an exception.
class SynchronizedSection {
 public:
  SynchronizedSection(LockManager& locks, std::string name) : mutex_(locks.lock(std::move(name))) {
    mutex_.lock();
  }
  ~SynchronizedSection() { mutex_.unlock(); }
  SynchronizedSection(const SynchronizedSection&) = delete;
  SynchronizedSection& operator=(const SynchronizedSection&) = delete;

 private:
  Mutex mutex_;
};
}  // namespace detail

/// Runs `work` under the lock `name` and returns what it returns; re-entrant per thread (Mutex).
/// Throws LockError as Mutex::lock does, and whatever `work` throws.
template <class Work>
decltype(auto) synchronized(LockManager& locks, std::string name, Work&& work) {
  detail::SynchronizedSection section(locks, std::move(name));
  return std::forward<Work>(work)();
}

#if defined(__cpp_lib_source_location)
/// Same, with the calling function's qualified name, without return type and parameters, as the
/// lock's name. A function without a stable name (see lock_name_of) must pass one.
template <class Work>
requires std::is_invocable_v<Work&>
decltype(auto) synchronized(LockManager& locks, Work&& work,
                            std::source_location where = std::source_location::current()) {
  return synchronized(locks, detail::lock_name_of(where.function_name()), std::forward<Work>(work));
}
#endif

}  // namespace dlock::inline v0

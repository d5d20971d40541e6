// SPDX-License-Identifier: Apache-2.0
//
// synchronized: runs a callable under a lock, named by default after the calling function.
//
//   void Billing::close_month() {
//     dlock::synchronized(locks, [&](std::stop_token lost) { ... });   // "Billing::close_month"
//   }
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
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

template <class Work>
inline constexpr bool takes_stop_token = std::is_invocable_v<Work, std::stop_token>;
template <class Work>
inline constexpr bool takes_handle = std::is_invocable_v<Work, const LockHandle&>;
template <class Work>
inline constexpr bool is_work =
    takes_stop_token<Work> || takes_handle<Work> || std::is_invocable_v<Work>;

/// Calls the work with what it takes, and unlocks when it is over, also by an exception.
class SynchronizedSection {
 public:
  explicit SynchronizedSection(std::shared_ptr<DistributedLock> lock);
  ~SynchronizedSection();
  SynchronizedSection(const SynchronizedSection&) = delete;
  SynchronizedSection& operator=(const SynchronizedSection&) = delete;

  template <class Work>
  decltype(auto) call(Work&& work) {
    if constexpr (takes_stop_token<Work>) {
      takes_ = Takes::stop_token;
      return std::forward<Work>(work)(mutex_.held()->stop_token());
    } else if constexpr (takes_handle<Work>) {
      takes_ = Takes::handle;
      return std::forward<Work>(work)(std::as_const(*mutex_.held()));
    } else {
      return std::forward<Work>(work)();
    }
  }
  /// After work that returned: unlocks. Throws LockError{lock_lost} for a loss that the work was
  /// not told of.
  void leave();

 private:
  enum class Takes { nothing, stop_token, handle };
  bool was_told() const;

  Mutex mutex_;
  Takes takes_ = Takes::nothing;
  bool left_ = false;
};

}  // namespace detail

/// Runs `work` under `lock` (a MultiLock: under all of them) and returns what it returns;
/// re-entrant per thread (Mutex). `work` takes a std::stop_token (requested when the lock is lost),
/// or else a const LockHandle& (its token, check(), stop_token()), or else nothing.
///
/// Throws LockError as Mutex::lock does, and whatever `work` throws. Throws LockError{lock_lost}
/// after work that returned, in place of its result, if the lock was lost by then (or, where this
/// call is the outermost, proves lost when it is given back) and the work had not been told: it
/// took neither; or it took the token, and stop had not been requested when it returned; or it took
/// the handle, and that did not say `lost` when it returned. Work that was told has the last word:
/// what it returns is returned. That the store did not confirm the release in time is no loss.
template <class Work>
decltype(auto) synchronized(std::shared_ptr<DistributedLock> lock, Work&& work) {
  detail::SynchronizedSection section(std::move(lock));
  using Result = decltype(section.call(std::forward<Work>(work)));
  if constexpr (std::is_void_v<Result>) {
    section.call(std::forward<Work>(work));
    section.leave();
  } else if constexpr (std::is_reference_v<Result>) {
    Result result = section.call(std::forward<Work>(work));
    section.leave();
    return static_cast<Result>(result);
  } else {
    Result result = section.call(std::forward<Work>(work));
    section.leave();
    return result;
  }
}

/// Same, under the lock of that name.
template <class Work>
decltype(auto) synchronized(LockManager& locks, std::string name, Work&& work) {
  return synchronized(locks.lock(std::move(name)), std::forward<Work>(work));
}

#if defined(__cpp_lib_source_location)
/// Same, with the calling function's qualified name, without return type and parameters, as the
/// lock's name. A function without a stable name (see lock_name_of) must pass one.
template <class Work>
requires detail::is_work<Work>
decltype(auto) synchronized(LockManager& locks, Work&& work,
                            std::source_location where = std::source_location::current()) {
  return synchronized(locks, detail::lock_name_of(where.function_name()), std::forward<Work>(work));
}
#endif

}  // namespace dlock::inline v0

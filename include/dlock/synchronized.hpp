// SPDX-License-Identifier: Apache-2.0
//
// synchronized: runs a callable under a lock, named by default after the calling function.
//
//   void Billing::close_month() {
//     dlock::synchronized(locks, [&](std::stop_token lost) { ... });   // "Billing::close_month"
//   }
//
// A Section, or the configuration (`sections:`), sets the kind of lock, its name, and how long to
// wait:
//
//   dlock::synchronized(locks, {.type = dlock::LockType::read, .lock = "stock", .wait = 2s}, view);
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstdint>
#include <memory>
#include <optional>
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
#include "dlock/section.hpp"

namespace dlock::inline v0 {

namespace detail {
/// `void ns::Type::f(int) const` -> `ns::Type::f`. Throws LockError{invalid_name} for a lambda, a
/// template or an anonymous namespace: their names differ between compilers and builds.
std::string lock_name_of(const char* pretty_function);

#if defined(__cpp_lib_source_location)
using Where = std::source_location;
#else
/// The compiler cannot name the call site.
struct Where {
  static constexpr Where current() noexcept { return {}; }
  constexpr const char* file_name() const noexcept { return nullptr; }
  constexpr const char* function_name() const noexcept { return nullptr; }
  constexpr std::uint32_t line() const noexcept { return 0; }
};
#endif

/// Call site of synchronized(), in the form that the library uses for any compiler; null: not
/// known.
struct CallSite {
  const char* file = nullptr;
  std::uint32_t line = 0;
  const char* function = nullptr;
};

inline CallSite site_of(const Where& where) noexcept {
  return {where.file_name(), where.line(), where.function_name()};
}

template <class Work>
inline constexpr bool takes_stop_token = std::is_invocable_v<Work, std::stop_token>;
template <class Work>
inline constexpr bool takes_handle = std::is_invocable_v<Work, const LockHandle&>;
template <class Work>
inline constexpr bool is_work =
    takes_stop_token<Work> || takes_handle<Work> || std::is_invocable_v<Work>;

/// Calls the work with the argument that it accepts. Unlocks when it is over, also by an exception.
class SynchronizedSection {
 public:
  SynchronizedSection(std::shared_ptr<DistributedLock> lock, const CallSite& site);
  /// As the configuration's section of that name says; else the lock of that name.
  SynchronizedSection(LockManager& locks, std::string name, const CallSite& site);
  SynchronizedSection(LockManager& locks, Section section, const CallSite& site);
  ~SynchronizedSection();
  SynchronizedSection(const SynchronizedSection&) = delete;
  SynchronizedSection& operator=(const SynchronizedSection&) = delete;

  template <class Work>
  decltype(auto) call(Work&& work) {
    if constexpr (takes_stop_token<Work>) {
      takes_ = Takes::stop_token;
      return std::forward<Work>(work)(held()->stop_token());
    } else if constexpr (takes_handle<Work>) {
      takes_ = Takes::handle;
      return std::forward<Work>(work)(std::as_const(*held()));
    } else {
      return std::forward<Work>(work)();
    }
  }
  /// After work that returned: unlocks. Throws LockError{lock_lost} for a loss that the work was
  /// not notified of.
  void leave();

 private:
  enum class Takes { nothing, stop_token, handle };
  LockHandle* held() const;
  bool was_told() const;
  void enter(LockManager& locks, Section section, const CallSite& site);
  void enter(std::optional<std::chrono::milliseconds> wait, const CallSite& site);

  std::shared_ptr<DistributedLock> lock_;
  Mode mode_ = Mode::exclusive;
  Takes takes_ = Takes::nothing;
  bool left_ = false;
};

template <class Work>
decltype(auto) run_in(SynchronizedSection& section, Work&& work) {
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

}  // namespace detail

/// Runs `work` under `lock` (a MultiLock: under all of them) and returns what it returns;
/// re-entrant per thread (Mutex). `work` takes a std::stop_token (requested when the lock is lost),
/// or else a const LockHandle& (its token, check(), stop_token()), or else nothing.
///
/// Throws LockError as Mutex::lock does, and whatever `work` throws. Throws LockError{lock_lost} in
/// place of the result if the lock was lost when the work returned, without notice to the work. The
/// outermost call also throws it for a loss that the release finds. Work was not notified in these
/// cases:
/// - it accepts neither argument;
/// - it accepts the token, and stop had not been requested when it returned;
/// - it accepts the handle, and that did not report `lost` when it returned.
///
/// The result of work that was notified is returned. A release that the store did not confirm in
/// time is not a loss.
template <class Work>
decltype(auto) synchronized(std::shared_ptr<DistributedLock> lock, Work&& work,
                            detail::Where where = detail::Where::current()) {
  detail::SynchronizedSection section(std::move(lock), detail::site_of(where));
  return detail::run_in(section, std::forward<Work>(work));
}

/// Same, as the configuration's section of that name says (Config::sections); where it has none,
/// under the lock of that name.
template <class Work>
decltype(auto) synchronized(LockManager& locks, std::string name, Work&& work,
                            detail::Where where = detail::Where::current()) {
  detail::SynchronizedSection section(locks, std::move(name), detail::site_of(where));
  return detail::run_in(section, std::forward<Work>(work));
}

/// Same, with `section`, whatever the configuration has. Throws LockError{timed_out} when its
/// `wait` is over; the work has not run. Re-entrant as SharedMutex, on the same thread and lock. A
/// mutex or writer may read, and remains alone. A reader that wants to write gets
/// {operation_not_permitted}. A semaphore is not re-entrant. Throws {invalid_argument} for a
/// contradictory section, and for a kind that the store does not have, before anything is sent.
template <class Work>
decltype(auto) synchronized(LockManager& locks, Section section, Work&& work,
                            detail::Where where = detail::Where::current()) {
  detail::SynchronizedSection entered(locks, std::move(section), detail::site_of(where));
  return detail::run_in(entered, std::forward<Work>(work));
}

#if defined(__cpp_lib_source_location)
/// Same, with the calling function's qualified name, without return type and parameters, as the
/// name of the section or lock. A function without a stable name (see lock_name_of) must pass one.
template <class Work>
requires detail::is_work<Work>
decltype(auto) synchronized(LockManager& locks, Work&& work,
                            std::source_location where = std::source_location::current()) {
  return synchronized(locks, detail::lock_name_of(where.function_name()), std::forward<Work>(work),
                      where);
}
#endif

}  // namespace dlock::inline v0

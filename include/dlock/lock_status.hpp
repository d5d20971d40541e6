// SPDX-License-Identifier: Apache-2.0
//
// LockStatus: the state of a lock in its store, for `dlock status`, `dlock list` and dashboards. It
// may be out of date when it is read; never decide ownership from it.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/mode.hpp"

namespace dlock::inline v0 {

/// The holder of a lock or a waiter, as it described itself in the store. Not verified.
struct Owner {
  std::string id;    ///< unique per claim
  std::string host;  ///< host name
  std::int64_t pid = 0;
  std::string app;  ///< `app` of the configuration, default the program's name
  /// The pid namespace that `pid` belongs to: inode number of /proc/PID/ns/pid. 0: unknown.
  std::uint32_t pid_namespace = 0;
};

/// Returns the host, the pid and the pid namespace of this process; `id` and `app` are empty.
Owner this_process();

/// Whether `owner` names a process of this host and of this process's pid namespace.
bool runs_here(const Owner& owner);

/// Returns `pid 7`, or `pid 7 in another pid namespace` where an operator on the owner's host
/// cannot use the number as it is.
std::string pid_words(const Owner& owner);

/// Whether the pid is one that the owner's host knows it by: not one of a container.
bool has_host_pid(const Owner& owner);

/// Returns `pid 7`, or `pid 7 in its pid namespace` for a process in a container. For a text that
/// processes anywhere read.
std::string pid_words_for_others(const Owner& owner);

/// Appends `PID` or `PID@NAMESPACE`, the text of both numbers in a store.
void append_pid(const Owner& owner, std::string& out);

/// Reads what append_pid() has written into `owner`. False: `text` has another format.
bool read_pid(std::string_view text, Owner& owner);

/// The mark of an operator who breaks a lock (LockManager::evict(), `dlock break`). A marked record
/// is not renewed, and no client acquires it until its holder has freed it or its lease is over.
struct Break {
  Owner by;                         ///< host, pid and app; `id` is empty. Not verified
  std::string reason = {};          ///< as the operator wrote it; may be empty
  std::chrono::milliseconds at{0};  ///< since 1970, on the breaker's wall clock
};

/// Returns `dlock (pid 7) on host: reason`.
std::string break_words(const Break& mark);

/// Returns `HOST,PID,APP,MS,REASON`, the text of a mark in a store: printable ASCII without spaces,
/// at most 2 KiB.
std::string write_break(const Break& mark);

/// Reads what write_break() has written. Text in another format becomes the reason.
Break read_break(std::string_view text);

/// One of the holders of a lock in shared mode.
struct SharedHolder {
  Owner owner;
  std::optional<std::uint64_t> token;
  std::optional<std::chrono::milliseconds> held_for;   ///< as LockStatus::held_for
  std::optional<std::chrono::milliseconds> remaining;  ///< as LockStatus::remaining
  std::optional<Break> broken{};                       ///< as LockStatus::broken
};

struct LockStatus {
  std::string name;
  bool held = false;
  /// In which way, if it is held.
  Mode mode = Mode::exclusive;
  /// Mode shared: all holders, the earliest first. The members for one holder, such as `owner`,
  /// describe the first of them.
  std::vector<SharedHolder> readers;
  /// A migration's record replaces the lock: no client holds it in this store.
  bool sealed = false;
  std::optional<std::uint64_t> token;
  std::optional<Owner> owner;
  /// How long ago the present claim was made, on the store's clock. Empty: the store does not know.
  std::optional<std::chrono::milliseconds> held_for;
  /// How long the store keeps the holder without news from it. Empty without a lease.
  std::optional<std::chrono::milliseconds> remaining;
  /// Set while an operator breaks the lock. `remaining` is then the longest time until it is free.
  std::optional<Break> broken{};
  /// The waiters, the next one first. Foreign clients that write no metadata have only an id.
  std::vector<Owner> waiting;
  /// Things an operator should know: foreign formats, session ids, what `break` would do.
  std::vector<std::string> notes;
};

/// A holder of permits of a semaphore, or a waiter for them.
struct PermitHolder {
  Owner owner;
  std::uint32_t permits = 1;
  std::optional<std::uint64_t> token;                  ///< empty while it waits
  std::optional<std::chrono::milliseconds> held_for;   ///< as LockStatus::held_for
  std::optional<std::chrono::milliseconds> remaining;  ///< as LockStatus::remaining
  std::optional<Break> broken{};                       ///< as LockStatus::broken
};

/// As LockStatus, of a semaphore.
struct SemaphoreStatus {
  std::string name;
  /// Number of permits of the semaphore. Empty: it was never used, or its store has forgotten it.
  std::optional<std::uint32_t> limit;
  std::vector<PermitHolder> holders;  ///< the earliest first
  std::vector<PermitHolder> waiting;  ///< the next one first
  std::vector<std::string> notes;     ///< as LockStatus::notes

  /// Returns the number of held permits. It exceeds the limit for a while after the limit was
  /// lowered.
  std::uint64_t held() const noexcept;
  /// Returns the number of free permits.
  std::uint64_t free() const noexcept;
};

}  // namespace dlock::inline v0

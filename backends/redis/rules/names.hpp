// SPDX-License-Identifier: Apache-2.0
//
// How lock names become Redis keys: a template with `{name}` in the name's place (default
// `dlock:{{name}}`: the outer braces belong to the key). A template can be another program's key.
// In the name `%`, `{` and `}` are percent-escaped, so that braces belong to the template alone.
// The keys beside the lock's own have a `%`, which no escaped name has. Injective. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::redis {

/// Suffixes of the keys beside a lock's.
inline constexpr std::string_view kFenceKey = "%fence";
inline constexpr std::string_view kQueueKey = "%queue";
inline constexpr std::string_view kAliveKey = "%alive";
inline constexpr std::string_view kNextKey = "%next";
inline constexpr std::string_view kNoteKey = "%note";
inline constexpr std::string_view kBrokenKey = "%broken";
inline constexpr std::string_view kAskKey = "%ask";      ///< a reader adds `%` and its owner's id
inline constexpr std::string_view kGrantKey = "%grant";  ///< by which an exported grant is known
inline constexpr std::string_view kPermitsKey = "%permits";  ///< a semaphore of the same name

/// The common part of all keys of one lock.
struct KeyBase {
  std::string text;     ///< the keys beside the lock's begin with it
  bool tagged = false;  ///< it is the lock's key as it is; else that key in braces

  std::string_view lock() const noexcept {
    const std::string_view all = text;
    return tagged ? all : all.substr(1, all.size() - 2);
  }
};

/// All keys of one lock; in a cluster they share a slot.
struct LockKeys {
  std::string lock;    ///< string `token:owner`, expires with the lease
  std::string fence;   ///< the last token given out
  std::string queue;   ///< zset: waiters by arrival
  std::string alive;   ///< hash: when each waiter counts as dead, and its kind
  std::string next;    ///< the notified waiter, which has the first try
  std::string note;    ///< string: a note of this name, which has nothing to do with the lock
  std::string broken;  ///< the value that an operator has removed, for its holder to find
};

inline constexpr std::string_view kNamePlace = "{name}";
/// The template that only dlock writes to.
inline constexpr std::string_view kOwnTemplate = "dlock:{{name}}";

/// Empty, or why it cannot be a template.
std::string template_error(std::string_view key_template);

class KeyMap {
 public:
  /// `key_template` without error.
  explicit KeyMap(std::string_view key_template);

  std::string key(std::string_view name) const;
  KeyBase base(std::string_view name) const;
  LockKeys keys(std::string_view name) const;
  /// Returns the keys of one run of the self-test. `id` is random. They are not the keys of a name.
  KeyBase self_test_base(std::string_view id) const;
  /// The name behind a lock's key; empty for any other key.
  std::optional<std::string> name(std::string_view key) const;
  /// For SCAN MATCH: finds every lock's key whose name begins with `prefix` (and others).
  std::string pattern(std::string_view prefix) const;
  /// The same of the keys beside it: `%queue`, `%fence`.
  std::optional<std::string> name_beside(std::string_view key, std::string_view suffix) const;
  std::string pattern_beside(std::string_view prefix, std::string_view suffix) const;

 private:
  KeyBase around(std::string_view middle) const;

  std::string before_;
  std::string after_;
  bool tagged_;  ///< the template has a hash tag
};

}  // namespace dlock::redis

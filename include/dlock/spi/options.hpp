// SPDX-License-Identifier: Apache-2.0
//
// The options of a store in its URL and YAML block: its author declares them, the core parses and
// checks them, and passes them to the backend.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/config.hpp"

namespace dlock::inline v0 {

/// An option of a store in its URL and YAML block. The core parses and checks values by it, before
/// the backend sees any.
struct OptionSpec {
  enum class Kind { duration, integer, boolean, text, secret, choice };
  std::string_view name;
  Kind kind = Kind::text;
  /// As it would be written in the configuration; empty: not set.
  std::string_view default_value = {};
  /// Limits of durations (in milliseconds) and integers, inclusive.
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  /// Values of a choice, separated by `|`.
  std::string_view choices = {};
  std::string_view help = {};
};

/// `cache`, among the options of a backend with Capabilities::can_tell_contention: the core does
/// the rest.
OptionSpec cache_option();
/// `max_queue`, of one with Capabilities::can_bound_queue.
OptionSpec max_queue_option();

struct Endpoint {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};

/// One store's configuration, parsed and checked against the backend's OptionSpecs.
struct StoreOptions {
  std::string name;    ///< in the configuration
  std::string scheme;  ///< as written: `zookeeper`, `zk`
  std::vector<Endpoint> endpoints;
  std::string path;  ///< decoded, with its leading slash; empty if there was none
  std::string username;
  std::string password;
  /// The file that holds the password, absolute; empty: another source. A backend reads it again
  /// for each login (<dlock/spi/password.hpp>).
  std::string password_file;
  std::string app;  ///< name of this program in owner metadata
  /// Every option of the backend that has a value, by name.
  std::map<std::string, std::string, std::less<>> text;
  std::map<std::string, std::int64_t, std::less<>> number;  ///< durations in ms, integers, 0/1
  std::map<std::string, Origin, std::less<>> origin;        ///< only of what the user wrote
  /// Setting::starter_key of those that have one.
  std::map<std::string, std::string, std::less<>> starter_key;

  std::chrono::milliseconds duration(std::string_view option) const;
  std::int64_t integer(std::string_view option) const;
  bool flag(std::string_view option) const;
  const std::string& string(std::string_view option) const;
  bool given(std::string_view option) const { return origin.find(option) != origin.end(); }
};

/// Refuses options that cannot be used together, or at all. Throws LockError with `config_invalid`,
/// the store's name and `text`, which says what to write instead. The message begins with the place
/// where the user wrote the option, if any.
[[noreturn]] void refuse_option(const StoreOptions& options, std::string_view option,
                                std::string text);

/// Returns the candidate nearest to a mistyped `word`. Empty: none is near enough. Case does not
/// count, and `-` is `_`. Any thread.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
/// Returns `did you mean 'x'?` if there is a near candidate, else `known: a, b, c`. Any thread.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// The configuration as plain data: the stores, and the routes from lock names to stores. Reading it
// does no I/O beyond the file itself. The manager checks the settings of a store against the
// backend's list of options when it is opened.
//
//   stores:
//     zk: { url: "zookeeper://zk1,zk2,zk3/app", session_timeout: 10s }
//   locks:
//     - { match: "billing/**", store: zk, require: [exclusive, fair] }
//   sections:
//     stock.view: { type: read, lock: stock, wait: 2s }
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/error.hpp"
#include "dlock/section.hpp"

namespace dlock::inline v0 {

/// Where a value was written, so that a message can point there.
struct Origin {
  std::string file;  ///< a path, or `URL`, or an environment variable's name
  int line = 0;      ///< from 1; 0: the source has no lines
  int column = 0;    ///< from 1; 0 where it is not known
  /// `dlock.yaml:3:5`
  std::string text() const;
};

/// One `key: value`, unparsed. Nested keys are joined with a dot: `retry.policy`.
struct Setting {
  std::string key;
  std::string value;
  Origin origin;
  /// The key in the block of a Spring starter, if the setting was read from one. A value too low
  /// for its server is then raised, with a warning. Empty: the setting was written as `key`.
  std::string starter_key = {};
};

struct StoreConfig {
  std::string name = "default";
  std::string url;
  std::vector<Setting> settings;  ///< beside the URL's own query; a key in both is an error
  Origin origin;

  /// Whether `key` is written, among the settings or in the URL's query.
  bool has(std::string_view key) const;
  /// Sets a value. It replaces the value of its key in the settings and in the URL's query, as an
  /// option of a command line does. Throws MissingReference.
  void set(const Setting& setting);
  /// Where its locks are, without user and password: equal for two stores only if a lock's name
  /// means the same lock in both. Not for reading. Throws MissingReference.
  std::string place() const;
};

/// A variable or a file that a store's settings name (`url_env`, `password_file`) is not there:
/// that store cannot be used, others can. Its code is config_invalid.
class MissingReference : public LockError {
 public:
  explicit MissingReference(std::string text);
};

/// A lock that is being moved from one store to another (docs/migration.md).
struct MigrateConfig {
  std::string from;
  std::string to;
  std::string plan;
  /// The store that keeps the plan's gate if `from` may forget: `to`, or a third one, which forgets
  /// nothing. Empty: `from` keeps it.
  std::string gate;
  /// Without `gate`: shortest interval at which a client that waits in `to` checks whether the lock
  /// has moved back.
  std::chrono::milliseconds poll{1000};
};

struct RouteConfig {
  /// Lock names: parts of literals with `*` (within a part) and `**` (any number of parts).
  std::string match = "**";
  std::string store = "default";  ///< with `migrate`: its `from`
  std::optional<MigrateConfig> migrate;
  std::optional<std::chrono::milliseconds> wait;   ///< default of AcquireOptions::wait
  std::optional<std::chrono::milliseconds> lease;  ///< default of AcquireOptions::lease
  /// `exclusive`, `fair`, `token` (durable tokens), `shared`, `max_queue`, `head_start`,
  /// `revocable`: refuse a store that cannot.
  std::vector<std::string> require;
  Origin origin;
  std::optional<std::chrono::milliseconds> max_hold{};  ///< default of AcquireOptions::max_hold
  std::optional<std::uint32_t> max_queue{};             ///< default of AcquireOptions::max_queue
};

/// One entry of `sections:`.
struct SectionConfig {
  std::string name;  ///< the name passed to synchronized(): chosen by the program, or a function's
  Section section;   ///< an empty lock name means `name`
  Origin origin;
};

struct Config {
  std::vector<StoreConfig> stores;
  std::vector<RouteConfig> locks;  ///< first match wins
  /// Warnings about settings that may not mean what their author intended (the seed starter's
  /// `zk-lock:` block).
  std::vector<std::string> warnings;
  std::vector<SectionConfig> sections;  ///< each name once

  /// One store, one route `**`. `origin`: where the URL was written, for messages. Throws
  /// LockError{config_invalid}.
  static Config from_url(std::string_view url, Origin origin = {"URL"});
  /// Throws LockError{config_invalid} with file, line, value and remedy.
  static Config from_yaml(std::string_view text, const std::string& file_name);
  static Config from_file(const std::string& path);
  /// Reads the configuration that the environment variable DLOCK_CONFIG (a file) or DLOCK_STORE (a
  /// URL) names. An empty variable counts as unset. Throws LockError{config_invalid}, also if
  /// neither is set, or both.
  static Config from_environment();

  /// Returns the route of a lock name: the first that matches. Null: none matches. Lifetime: until
  /// `locks` is changed.
  const RouteConfig* route(std::string_view lock) const;
};

}  // namespace dlock::inline v0

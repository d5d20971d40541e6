// SPDX-License-Identifier: Apache-2.0
//
// Shared by the readers of YAML blocks: positions, errors, and a mapping as flat settings.
#pragma once

#include <yaml-cpp/yaml.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/config.hpp"

namespace dlock::core {

/// One YAML file under way: where we are, for messages.
class YamlFile {
 public:
  explicit YamlFile(std::string name) : name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }
  Origin origin(const YAML::Node& node) const;
  /// Throws LockError{config_invalid} that points at the node.
  [[noreturn]] void fail(const YAML::Node& node, const std::string& text) const;
  [[noreturn]] void fail(const Origin& origin, const std::string& text) const;

  struct Entry {
    std::string key;
    YAML::Node key_node;
    YAML::Node value;
  };
  /// The entries of a mapping; complains about anything else (`what` names it) and about a key that
  /// is written twice.
  std::vector<Entry> entries(const YAML::Node& mapping, std::string_view what) const;

  /// A scalar's text; complains about anything else.
  std::string scalar(const YAML::Node& node, std::string_view key) const;
  /// Same, or a list of scalars, joined by commas.
  std::string scalar_or_list(const YAML::Node& node, std::string_view key) const;

  /// Adds `entry` to `settings`; nested mappings are joined by a dot.
  void flatten(const Entry& entry, const std::string& prefix, std::vector<Setting>& settings) const;

  [[noreturn]] void fail_unknown(const Entry& entry, std::string_view where,
                                 std::span<const std::string_view> known) const;

 private:
  std::string name_;
};

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/fail.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

constexpr std::size_t kMostSettings = 200;  // settings of one store
constexpr std::size_t kLongestKey = 100;    // with those that it is in

}  // namespace

Origin YamlFile::origin(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return {name_, 0, 0};
  return {name_, mark.line + 1, mark.column + 1};
}

void YamlFile::fail(const YAML::Node& node, const std::string& text) const {
  fail(origin(node), text);
}

void YamlFile::fail(const Origin& origin, const std::string& text) const {
  fail_config(origin, {}, text);
}

std::vector<YamlFile::Entry> YamlFile::entries(const YAML::Node& mapping,
                                               std::string_view what) const {
  if (!mapping.IsMap()) {
    fail(mapping, fmt::format("{}: a mapping is expected here; write `key: value` lines", what));
  }
  std::vector<Entry> entries;
  for (const auto& pair : mapping) {
    if (!pair.first.IsScalar()) fail(pair.first, fmt::format("{}: a key must be one word", what));
    Entry entry{pair.first.Scalar(), pair.first, pair.second};
    for (const Entry& other : entries) {
      if (other.key == entry.key) {
        fail(entry.key_node, fmt::format("{}: '{}' is written twice (first in line {}); keep one",
                                         what, entry.key, origin(other.key_node).line));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string YamlFile::scalar(const YAML::Node& node, std::string_view key) const {
  if (node.IsNull()) fail(node, fmt::format("{}: it has no value", key));
  if (!node.IsScalar()) fail(node, fmt::format("{}: one value is expected here", key));
  return node.Scalar();
}

std::string YamlFile::scalar_or_list(const YAML::Node& node, std::string_view key) const {
  if (!node.IsSequence()) return scalar(node, key);
  std::string joined;
  for (const auto& item : node) {
    if (!joined.empty()) joined += ',';
    joined += scalar(item, key);
  }
  if (joined.empty()) fail(node, fmt::format("{}: the list is empty", key));
  return joined;
}

void YamlFile::flatten(const Entry& entry, const std::string& prefix,
                       std::vector<Setting>& settings) const {
  const std::string key = prefix + entry.key;
  // An alias may expand to its own parent: without an end, or with an end that is too far away.
  if (settings.size() >= kMostSettings || key.size() > kLongestKey) {
    fail(entry.key_node, fmt::format("{}: too many settings, or too deep in each other",
                                     std::string_view(key).substr(0, kLongestKey)));
  }
  if (!entry.value.IsMap()) {
    // The origin is that of the key: a reader searches for the key.
    settings.push_back({key, scalar_or_list(entry.value, key), origin(entry.key_node)});
    return;
  }
  // So every branch ends in a setting, or in a complaint, and their number ends all of it.
  if (entry.value.size() == 0) fail(entry.key_node, fmt::format("{}: it has no value", key));
  for (const Entry& inner : entries(entry.value, key)) flatten(inner, key + ".", settings);
}

void YamlFile::fail_unknown(const Entry& entry, std::string_view where,
                            std::span<const std::string_view> known) const {
  fail(entry.key_node,
       fmt::format("{}: unknown key{}; {}", entry.key, where, suggestion(entry.key, known)));
}

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// The highest token of each lock name, for a bounded number of names. The lowest token goes first:
// where all names count by one clock or counter, that is the oldest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::core {

/// Not thread-safe.
class HighestTokens {
 public:
  explicit HighestTokens(std::size_t most_names) : most_names_(most_names == 0 ? 1 : most_names) {}
  HighestTokens(const HighestTokens&) = delete;
  HighestTokens& operator=(const HighestTokens&) = delete;

  /// Empty: not remembered; then its highest was no higher than floor().
  std::optional<std::uint64_t> find(std::string_view name) const;
  /// A lower one changes nothing.
  void raise(std::string_view name, std::uint64_t token);

  /// The highest token that was forgotten; 0: none was.
  std::uint64_t floor() const noexcept { return floor_; }
  std::size_t size() const noexcept { return by_name_.size(); }

 private:
  void forget_lowest();

  const std::size_t most_names_;
  std::map<std::string, std::uint64_t, std::less<>> by_name_;
  /// The views are of by_name_'s keys, which stay where they are.
  std::set<std::pair<std::uint64_t, std::string_view>> by_token_;
  std::uint64_t floor_ = 0;
};

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// The highest token of each lock name, for a bounded number of names, and the highest of those of
// mode exclusive: readers hold a lock together, so their tokens arrive in any order. The lowest
// token is dropped first: where all names count by one clock or counter, that is the oldest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dlock/detail/recycled.hpp"
#include "dlock/mode.hpp"

namespace dlock::core {

/// Not thread-safe.
class HighestTokens {
 public:
  explicit HighestTokens(std::size_t most_names) : most_names_(most_names == 0 ? 1 : most_names) {}
  HighestTokens(const HighestTokens&) = delete;
  HighestTokens& operator=(const HighestTokens&) = delete;

  /// The highest that one of `mode` is to be compared with: for mode shared that of the exclusive
  /// ones, 0 if there was none. Empty: not remembered; then its highest was no higher than floor().
  std::optional<std::uint64_t> find(std::string_view name, Mode mode = Mode::exclusive) const;
  /// A lower one changes nothing.
  void raise(std::string_view name, std::uint64_t token, Mode mode = Mode::exclusive);

  /// The highest token that was forgotten; 0: none was.
  std::uint64_t floor() const noexcept { return floor_; }
  std::size_t size() const noexcept { return by_name_.size(); }

 private:
  struct Highest {
    std::uint64_t of_all = 0;
    std::uint64_t exclusive = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept {
      return std::hash<std::string_view>{}(name);
    }
  };
  using Place = std::pair<std::uint64_t, std::string_view>;
  void add(std::string_view name, const Highest& highest);
  void forget_lowest();

  const std::size_t most_names_;
  std::unordered_map<std::string, Highest, Hash, std::equal_to<>> by_name_;
  /// The views are of by_name_'s keys, which stay where they are.
  std::set<Place, std::less<>, detail::Recycled<Place>> by_token_;
  std::uint64_t floor_ = 0;
};

}  // namespace dlock::core

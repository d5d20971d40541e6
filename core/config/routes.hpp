// SPDX-License-Identifier: Apache-2.0
//
// Selects the store of a lock: the first route whose pattern matches its name. Patterns are lock
// names in which `*` stands for any run of bytes within one part, and a part `**` for any number of
// parts, none included: `billing/**` is `billing` and everything below it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/name.hpp"

namespace dlock::core {

/// Null if none matches.
const RouteConfig* first_match(std::span<const RouteConfig> routes, std::string_view name);

class Routes {
 public:
  explicit Routes(std::vector<RouteConfig> routes) : routes_(std::move(routes)) {}

  /// Returns the first match; null: none matches. Lifetime: while this object lives.
  const RouteConfig* find(std::string_view name) const { return first_match(routes_, name); }

  const std::vector<RouteConfig>& all() const noexcept { return routes_; }

 private:
  std::vector<RouteConfig> routes_;
};

/// The store that its locks may be in beside RouteConfig::store; null: none.
const std::string* other_store(const RouteConfig& route) noexcept;
/// Whether its locks may be in that store.
bool leads_to(const RouteConfig& route, std::string_view store) noexcept;

/// A lock's name has no `*`.
inline bool is_pattern(std::string_view text) noexcept {
  return text.find('*') != std::string_view::npos;
}
bool pattern_matches(std::string_view pattern, std::string_view name);

/// Empty if it is a pattern, else what is wrong with it and what to write.
std::string pattern_error(std::string_view pattern);

/// True if every name that `second` matches is surely matched by `first`, so that a route with
/// `second` behind it is never reached. May return false where that is hard to decide.
bool pattern_covers(std::string_view first, std::string_view second);

/// Whether there is a name that both match.
bool patterns_meet(std::string_view one, std::string_view other);

/// A lock name, for it and all below; a pattern, for the names that match; empty, for all.
class WantedNames {
 public:
  /// Throws LockError{invalid_name}.
  explicit WantedNames(std::string text) : text_(std::move(text)) {
    if (text_.empty()) return;
    if (auto wrong = pattern_error(text_); !wrong.empty()) {
      throw LockError(make_error_code(errc::invalid_name), {text_, {}, std::move(wrong)});
    }
    is_pattern_ = is_pattern(text_);
    prefix_ = text_;
    if (!is_pattern_) return;
    prefix_.clear();
    for (const auto part : split_name(text_)) {
      if (is_pattern(part)) break;
      prefix_.append(prefix_.empty() ? "" : "/").append(part);
    }
  }

  /// Returns the parts that all wanted names start with, for Backend::list().
  const std::string& prefix() const noexcept { return prefix_; }
  bool has(const std::string& name) const { return !is_pattern_ || pattern_matches(text_, name); }

 private:
  std::string text_;
  std::string prefix_;
  bool is_pattern_ = false;
};

}  // namespace dlock::core

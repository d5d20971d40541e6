// SPDX-License-Identifier: Apache-2.0
//
// The note in a store that says by which routes programs lock there, and its comparison with a
// configuration. `dlock doctor` warns of a route that was edited while programs run. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/config.hpp"

namespace dlock::core {

/// The key of the note.
inline constexpr const char* kRouteUsesKey = "routes";

/// One route of one configuration. Times are since 1970, by the wall clock of the writers.
struct RouteUse {
  std::string configuration;  ///< config_digest()
  std::chrono::milliseconds since{0};
  std::chrono::milliseconds last{0};
  std::string who;                  ///< the last writer: program, pid and host
  std::string match;                ///< the pattern of the route
  std::vector<std::string> before;  ///< the patterns that precede it
};

/// 16 hexadecimal digits. Equal for configurations that route each name to the same place.
std::string config_digest(const Config& config);

/// The note with `use` in it, without entries that have expired. Empty: nothing is to be written,
/// because the entry is recent or the note has an unknown format.
std::optional<std::string> with_route_use(std::string_view note, RouteUse use);

/// A sentence for each entry whose names `config` does not route to `store`. Entries of the same
/// configuration and expired ones are skipped.
std::vector<std::string> route_conflicts(const Config& config, std::string_view store,
                                         std::string_view note, std::chrono::milliseconds now);

}  // namespace dlock::core

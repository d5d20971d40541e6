// SPDX-License-Identifier: Apache-2.0
//
// What stands in the node of the token offset. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::zookeeper {

/// Oldest first; tokens that were given out stand on one of them. Pure.
std::optional<std::vector<std::uint64_t>> parse_offsets(std::string_view text);
std::string write_offsets(const std::vector<std::uint64_t>& offsets);

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// The text in the node of the token offset: `v=1 7 19`. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::zookeeper {

/// Returns 0 and the offsets, oldest first. Each granted token has one of them.
std::optional<std::vector<std::uint64_t>> parse_offsets(std::string_view text);
/// Returns the refusal of a newer dlock's text. Empty: the text is not newer.
std::string newer_offsets(std::string_view node, std::string_view text);
std::string write_offsets(const std::vector<std::uint64_t>& offsets);

}  // namespace dlock::zookeeper

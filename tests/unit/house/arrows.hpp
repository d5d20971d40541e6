// SPDX-License-Identifier: Apache-2.0
//
// The arrows between rooms: which includes arrows.txt allows, and which there are.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dlock::house {

/// From room to room. A room is a folder, with `*` for the name of a store.
using Arrow = std::pair<std::string, std::string>;

/// arrows.txt as it is read.
struct Plan {
  std::set<std::string> rooms;
  std::set<Arrow> arrows;
};

/// \throws std::runtime_error if a line of `file` is not understood.
Plan read_plan(const std::filesystem::path& file);

/// What the includes of a source tree come to.
struct Finding {
  std::vector<std::string> wrong;  ///< "FILE:LINE includes HEADER: ROOM may not include ROOM"
  std::set<Arrow> used;
  std::set<std::string> inhabited;
};

/// Follows all includes of ours in the rooms' files below `root`.
Finding follow_includes(const std::filesystem::path& root, const Plan& plan);

/// Units (`x.cpp`, `x.hpp` or both) by folder.
std::map<std::string, std::set<std::string>> units(const std::filesystem::path& root,
                                                   const Plan& plan);

}  // namespace dlock::house

// SPDX-License-Identifier: Apache-2.0
//
// The note by which a lost record is noticed: the names of a plan that are known to have been
// moved. One a line, and a line with the number of its removals, which is no name's: so no two
// texts with a removal between them are equal, and who compared one wrote nothing after another
// (ledger.cpp, note_moved()). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::core::migration {

struct MovedNote {
  std::vector<std::string> names;  ///< sorted, distinct
  std::uint64_t removals = 0;

  bool has(std::string_view name) const;
  void add(const std::vector<std::string>& more);
  /// Counted, whether they were there or not.
  void remove(const std::vector<std::string>& gone);
  bool operator==(const MovedNote&) const = default;
};

std::string to_text(const MovedNote& note);
MovedNote parse_moved(std::string_view text);

}  // namespace dlock::core::migration

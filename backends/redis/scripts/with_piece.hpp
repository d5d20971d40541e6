// SPDX-License-Identifier: Apache-2.0
//
// Scripts that differ in a piece only.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace dlock::redis {

/// `piece` in the place that the script marks.
inline std::string with_piece(std::string script, std::string_view mark, std::string_view piece) {
  const auto place = script.find(mark);
  if (place == std::string::npos) throw std::logic_error("a script has lost its mark");
  return script.replace(place, mark.size(), piece);
}

}  // namespace dlock::redis

// SPDX-License-Identifier: Apache-2.0
#include "migration/move/target_place.hpp"

#include <fmt/format.h>

#include "migration/move/steps.hpp"

namespace dlock::core::migration {

TargetPlace place_in(std::string_view target, const std::optional<std::string>& text,
                     std::string_view source) {
  TargetPlace place;
  if (!text) return place;
  std::string why;
  place.record = parse_record(*text, &why);
  place.kind = TargetPlace::Kind::foreign;
  if (!place.record) {
    place.why =
        fmt::format("what stands in its place in the store '{}' cannot be read: {}", target, why);
  } else if (is_closed(*place.record, source)) {
    place.kind = TargetPlace::Kind::closed;
  } else {
    place.why = fmt::format(
        "plan '{}' has it in the store '{}', where it is {} and leads to '{}'; a lock goes back "
        "only the way it came",
        place.record->plan, target, to_string(place.record->state), place.record->target);
  }
  return place;
}

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
//
// What stands in a lock's place in the store that it is moved to. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "migration/record.hpp"

namespace dlock::core::migration {

struct TargetPlace {
  enum class Kind {
    open,     ///< nothing: a lock as always
    closed,   ///< what a rollback or an earlier plan from there has left; a younger record opens it
    foreign,  ///< a record that leads elsewhere, or what nobody can read: the lock cannot come here
  };
  Kind kind = Kind::open;
  std::optional<Record> record;  ///< unless it cannot be read
  std::string why;               ///< of foreign: what is wrong, a sentence
};

/// `text`: as Backend::record() found it in the target; `source`: where the lock comes from.
TargetPlace place_in(std::string_view target, const std::optional<std::string>& text,
                     std::string_view source);

}  // namespace dlock::core::migration

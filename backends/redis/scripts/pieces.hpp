// SPDX-License-Identifier: Apache-2.0
//
// What the scripts of writers and of readers have in common, as Lua.
#pragma once

#include <string_view>

namespace dlock::redis {

struct ScriptPieces {
  std::string_view look;       ///< the beginning of acquire: what stands there
  std::string_view first_try;  ///< who was woken, and dropping a process
  std::string_view hand_over;
  std::string_view wake;
  std::string_view place;      ///< of acquire: the owner, and the words of its `place`
  std::string_view queue_up;   ///< the end of acquire, where it was not granted
  std::string_view find_ours;  ///< the beginning of a writer's release
  std::string_view release;    ///< gives back what is ours
  std::string_view pass_on;    ///< the end of release: leaves the queue, wakes the next
};
ScriptPieces script_pieces();

}  // namespace dlock::redis

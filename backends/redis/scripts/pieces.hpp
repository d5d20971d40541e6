// SPDX-License-Identifier: Apache-2.0
//
// The Lua that the scripts of writers and of readers share.
#pragma once

#include <string_view>

namespace dlock::redis {

struct ScriptPieces {
  std::string_view look;       ///< the beginning of acquire: reads the keys
  std::string_view first_try;  ///< the notified waiter, and dropping a process
  std::string_view hand_over;
  std::string_view wake;
  std::string_view how;        ///< in acquire: the owner, and the fields of its argument `how`
  std::string_view queue_up;   ///< the end of acquire, where it was not granted
  std::string_view find_ours;  ///< the beginning of a writer's release
  std::string_view release;    ///< deletes the owner's value
  std::string_view pass_on;    ///< the end of release: leaves the queue, notifies the next
};
ScriptPieces script_pieces();

}  // namespace dlock::redis

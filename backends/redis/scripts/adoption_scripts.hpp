// SPDX-License-Identifier: Apache-2.0
//
// Moves a grant to another process. While a grant may be adopted, the proof of its export is stored
// beside the lock. A client that only reads the lock's key cannot adopt it. The script replaces the
// owner in the lock's key in one step, so that no other client finds the lock free.
#pragma once

#include <string_view>

namespace dlock::redis {

std::string_view offer_script();
std::string_view adopt_script();

}  // namespace dlock::redis

// SPDX-License-Identifier: Apache-2.0
//
// Records of migrations, which take a lock's place under its own key, and notes: of plans, and of
// scheduled runs, which also ask for the time.
#pragma once

#include <string>
#include <string_view>

namespace dlock::redis {

std::string record_script();
std::string seal_script();
std::string set_record_script();
std::string raise_script();
std::string note_script();
std::string set_note_script();
std::string time_script();

/// For scripts that put a record there as well: `wake_all(queue, next key, channel prefix)`.
std::string_view wake_all_lua();

}  // namespace dlock::redis

// SPDX-License-Identifier: Apache-2.0
//
// The same answers for people.
#pragma once

#include <string>
#include <vector>

#include "cli/json.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::cli {

/// Several lines, without the last newline.
std::string to_text(const LockStatus& status);
/// A table.
std::string to_text(const std::vector<LockStatus>& all);
std::string to_text(const std::vector<StoreFinding>& findings);

}  // namespace dlock::cli

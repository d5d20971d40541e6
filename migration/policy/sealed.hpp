// SPDX-License-Identifier: Apache-2.0
//
// What to tell a client that meets a migration's record and does not take part. Pure.
#pragma once

#include <string_view>

#include "dlock/spi/answers.hpp"

namespace dlock::core::migration {

/// Returns moving, with plan, target and the line to write; protocol if the record cannot be read.
/// `is_finished`: the plan has ended, and the line is the target alone.
Failure sealed_failure(std::string_view record, std::string_view lock, std::string_view store,
                       bool is_finished);

}  // namespace dlock::core::migration

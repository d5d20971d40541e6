// SPDX-License-Identifier: Apache-2.0
//
// The error code that a user gets for a backend's error.
#pragma once

#include "dlock/spi/error.hpp"

namespace dlock::core {

/// Returns the code for a user whose operation ended with `error`. That is the cause in the
/// backend's own category if that means the same, else the portable code.
error_code told_code(errc error, const Failure& cause) noexcept;

}  // namespace dlock::core

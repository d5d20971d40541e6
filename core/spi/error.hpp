// SPDX-License-Identifier: Apache-2.0
//
// What of a backend's error is told.
#pragma once

#include "dlock/spi/error.hpp"

namespace dlock::core {

/// The code to tell a user whose operation ended with `error`: the cause in the backend's own
/// category where that means the same, else the portable one.
error_code told_code(errc error, const Failure& cause) noexcept;

}  // namespace dlock::core

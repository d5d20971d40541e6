// SPDX-License-Identifier: Apache-2.0
//
// From a backend's own error codes to the portable ones.
#pragma once

#include "dlock/backend.hpp"
#include "dlock/error.hpp"

namespace dlock::core {

/// The portable condition a code stands for; `protocol` if it stands for none of ours.
errc portable(const error_code& ec) noexcept;

/// The code to tell a user whose operation ended with `error`: the cause in the backend's own
/// category where that means the same, else the portable one.
error_code told_code(errc error, const Failure& cause) noexcept;

/// Of what was thrown where nothing should be: `unavailable` for want of memory, threads or
/// descriptors, else `protocol`. Needs no memory in the first case.
Failure failure_of(const std::exception& error) noexcept;

inline Failure make_failure(errc error, std::string text) {
  return {make_error_code(error), std::move(text)};
}

}  // namespace dlock::core

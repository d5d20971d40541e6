// SPDX-License-Identifier: Apache-2.0
//
// From a backend's own error codes to the portable ones.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <exception>
#include <string>
#include <utility>

#include "dlock/error.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::inline v0 {

/// The portable condition a code stands for; `protocol` if it stands for none of ours.
errc portable(const error_code& ec) noexcept;

/// Of what was thrown where nothing should be: `unavailable` for want of memory, threads or
/// descriptors, else `protocol`. Needs no memory in the first case.
Failure failure_of(const std::exception& error) noexcept;

inline Failure make_failure(errc error, std::string text) {
  return {make_error_code(error), std::move(text)};
}

}  // namespace dlock::inline v0

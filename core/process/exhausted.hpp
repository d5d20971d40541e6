// SPDX-License-Identifier: Apache-2.0
//
// The error when the system has no thread or no descriptor left: `unavailable`, with the limit that
// was met and how to raise it. Nothing is broken then: the next call tries again.
#pragma once

#include <system_error>

#include "dlock/spi/answers.hpp"

namespace dlock::core {

/// A thread could not be made.
Failure out_of_threads(const std::error_code& error);

/// A descriptor could not be opened.
Failure out_of_descriptors(const std::error_code& error);

/// Whether the code says that a limit on descriptors was met.
bool is_out_of_descriptors(const std::error_code& error) noexcept;

}  // namespace dlock::core

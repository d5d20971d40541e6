// SPDX-License-Identifier: Apache-2.0
//
// The errors of the in-process store.
#pragma once

#include "dlock/error.hpp"

namespace dlock::memory {

enum class Error { closed = 1, not_holder = 2, not_held = 3, token_too_low = 4, sealed = 5 };

const boost::system::error_category& category() noexcept;
inline error_code make_error_code(Error e) noexcept { return {static_cast<int>(e), category()}; }

}  // namespace dlock::memory

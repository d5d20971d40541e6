// SPDX-License-Identifier: Apache-2.0
//
// In which way a lock is held.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {

/// exclusive: alone. shared: together with other holders in shared mode, as readers do.
enum class Mode { exclusive, shared };

const char* to_string(Mode value) noexcept;

}  // namespace dlock::inline v0

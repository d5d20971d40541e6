// SPDX-License-Identifier: Apache-2.0
//
// Counts the waiters in a lock file, by its locked bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {

/// Returns the number of waiters between the holders and `ticket`; stops counting above `most`.
/// Empty: the kernel does not say. Needs a few system calls for each of them.
std::optional<std::size_t> waiting_before(const LockFile& file, std::uint64_t ticket,
                                          std::size_t most);

}  // namespace dlock::local

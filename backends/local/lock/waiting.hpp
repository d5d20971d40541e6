// SPDX-License-Identifier: Apache-2.0
//
// How many wait in a lock file, by the bytes that are locked in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {

/// So many stand between those who hold the lock and `ticket`; beyond `most` it is not counted on.
/// Empty: the kernel does not say. A few system calls for each of them.
std::optional<std::size_t> waiting_before(const LockFile& file, std::uint64_t ticket,
                                          std::size_t most);

}  // namespace dlock::local

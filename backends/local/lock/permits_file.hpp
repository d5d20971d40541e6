// SPDX-License-Identifier: Apache-2.0
//
// The file of a semaphore's permits. Each held permit is a byte that its holder has locked. The
// kernel unlocks it when the holder dies. The file also has the limit, and records of holders and
// waiters for people.
//
//   0      `dlock-permits/1 0000000005\n`: the limit
//   1024   entries of waiters, 272 bytes each, at their ticket modulo 124
//   65536  entries of holders, 272 bytes each, at the number of their permit
//
// An entry is the number of permits, 8 bytes, and a lock file's record. Unwritten parts are holes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/local/lock/claim.hpp"
#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {

/// A claim of permits, with the claim of its place in the line for them.
ClaimPtr make_permits_claim(ClaimRequest request, Env& env);

/// Creates the file if it does not exist.
SystemResult open_permits(const Directory& directory, const std::string& file, LockFile& out);
/// Empty: the limit has not been written yet.
Failure read_limit(const LockFile& file, const std::string& path,
                   std::optional<std::uint32_t>& limit);
/// The numbers of permits that others hold.
std::vector<std::uint64_t> taken_slots(const LockFile& file);
/// Write the record of the waiter with that ticket, or of the holder of that permit.
void write_waiter(LockFile& file, std::uint64_t ticket, const ClaimRequest& request,
                  std::int64_t now_ms);
void write_slot(LockFile& file, std::uint64_t slot, std::uint64_t ticket,
                const ClaimRequest& request, std::int64_t now_ms);

// These may block: helper thread.
/// The limit is on disk when this returns. `if_absent`: keeps an existing limit.
Failure write_limit_through(const Directory& directory, const std::string& file,
                            std::uint32_t limit, bool if_absent);
Result<SemaphoreStatus> read_semaphore(const Directory& directory, const std::string& name,
                                       std::int64_t now_ms);
/// Returns all semaphores whose limit is known. `prefix` names whole parts.
Result<std::vector<SemaphoreStatus>> read_semaphores(const Directory& directory,
                                                     const std::string& prefix,
                                                     std::int64_t now_ms);

}  // namespace dlock::local

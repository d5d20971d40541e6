// SPDX-License-Identifier: Apache-2.0
//
// The file of a semaphore's permits. Each permit that is held is a byte that its holder has locked,
// which the kernel unlocks when he dies; beside that the file has the limit, and records of who
// holds and who waits, for people.
//
//   0      `dlock-permits/1 0000000005\n`: the limit
//   1024   entries of those who wait, 272 bytes each, at their ticket modulo 124
//   65536  entries of those who hold, 272 bytes each, at the number of their permit
//
// An entry is the number of permits, 8 bytes, and a lock file's record. What is not written is a
// hole.
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

/// Made when it is not there.
SystemResult open_permits(const Directory& directory, const std::string& file, LockFile& out);
/// Empty: nobody has written it yet.
Failure read_limit(const LockFile& file, const std::string& path,
                   std::optional<std::uint32_t>& limit);
/// The numbers of permits that others hold.
std::vector<std::uint64_t> taken_slots(const LockFile& file);
/// Who waits with that ticket, or holds that permit.
void write_waiter(LockFile& file, std::uint64_t ticket, const ClaimRequest& request,
                  std::int64_t now_ms);
void write_slot(LockFile& file, std::uint64_t slot, std::uint64_t ticket,
                const ClaimRequest& request, std::int64_t now_ms);

// These may block: helper thread.
/// It is on disk when this returns. `if_absent`: what stands there stays.
Failure write_limit_through(const Directory& directory, const std::string& file,
                            std::uint32_t limit, bool if_absent);
Result<SemaphoreStatus> read_semaphore(const Directory& directory, const std::string& name,
                                       std::int64_t now_ms);
/// Of all whose limit is known. `prefix` names whole parts.
Result<std::vector<SemaphoreStatus>> read_semaphores(const Directory& directory,
                                                     const std::string& prefix,
                                                     std::int64_t now_ms);

}  // namespace dlock::local

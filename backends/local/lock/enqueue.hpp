// SPDX-License-Identifier: Apache-2.0
//
// Drawing a ticket: the few system calls between taking the guard byte and giving it back. Nothing
// in here waits, so that the guard is held for microseconds.
#pragma once

#include <cstdint>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::local {

struct Entry {
  enum class What {
    granted,   ///< `ticket` is ours and nobody else is there, or other readers beside a reader
    waiting,   ///< `ticket` is ours, others are before it
    busy,      ///< others are there, and we did not want to queue
    sealed,    ///< `record` stands there: nobody holds it
    turned,    ///< the gate is not as the claim says, but `record`; there is no ticket
    raise,     ///< no ticket yet: sync, confirm_limit(raised), enter again
    replaced,  ///< the file is not the lock's any more: open it again
    moved,     ///< the path leads to another directory by now
    failed,
  };
  What what = What::failed;
  std::uint64_t ticket = 0;
  bool is_beside = false;  ///< readers are there, and we are one
  std::string record;
  std::uint64_t raised = 0;  ///< with raise, and with a ticket if sync and confirm are due; else 0
  Failure failure;
};

struct EntryRequest {
  const Directory& directory;
  const std::string& file_name;
  const ClaimRequest& claim;
  std::uint64_t known_token;  ///< of this lock, the highest this process has seen
  std::int64_t now_ms;        ///< wall clock
};

/// With the guard byte taken; gives it back. The ticket's byte is locked if there is a ticket.
Entry enter(LockFile& file, const EntryRequest& request);

/// After a sync that began when `raised` stood in the file. With the guard byte taken; gives it
/// back.
Failure confirm_limit(LockFile& file, const Directory& directory, const std::string& file_name,
                      std::uint64_t raised);

/// Tells people who holds the lock. A failure matters to nobody.
void write_holder(LockFile& file, std::uint64_t ticket, const ClaimRequest& claim,
                  std::int64_t now_ms);

}  // namespace dlock::local

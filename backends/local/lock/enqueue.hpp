// SPDX-License-Identifier: Apache-2.0
//
// Draws a ticket: the few system calls while the guard byte is locked. None of them waits, so the
// guard is held for microseconds.
#pragma once

#include <cstdint>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::local {

struct Entry {
  enum class What {
    granted,   ///< this claim has `ticket`, and no other is there, or a reader has only readers
               ///< beside it
    waiting,   ///< this claim has `ticket`, others are before it
    busy,      ///< others are there, and the claim does not queue
    sealed,    ///< `record` is there: no client can hold the lock
    turned,    ///< the gate is not as expected, but `record`; no ticket was drawn
    raise,     ///< no ticket yet: sync, confirm_limit(raised), enter again
    replaced,  ///< the file does not belong to the lock any more: open it again
    moved,     ///< the path leads to another directory now
    failed,
  };
  What what = What::failed;
  std::uint64_t ticket = 0;
  bool is_beside = false;  ///< this claim is a reader beside readers
  std::string record;
  std::uint64_t raised = 0;  ///< with raise, and with a ticket if sync and confirm are due; else 0
  Failure failure;
};

struct EntryRequest {
  const Directory& directory;
  const std::string& file_name;
  const ClaimRequest& claim;
  std::uint64_t known_token;  ///< the highest token of this lock that this process has seen
  std::int64_t now_ms;        ///< wall clock
};

/// Called with the guard byte locked; unlocks it. If there is a ticket, its byte is locked.
Entry enter(LockFile& file, const EntryRequest& request);

/// Called after a sync that began when `raised` was in the file. The guard byte must be locked;
/// unlocks it.
Failure confirm_limit(LockFile& file, const Directory& directory, const std::string& file_name,
                      std::uint64_t raised);

/// Writes the holder's record, for people. A failure has no effect.
void write_holder(LockFile& file, std::uint64_t ticket, const ClaimRequest& claim,
                  std::int64_t now_ms);

/// The answer to a claim that nothing was done for: `unavailable` if the failure may pass without
/// help, otherwise `failed`.
ClaimAnswer refusal(Failure failure);

}  // namespace dlock::local

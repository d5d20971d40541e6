// SPDX-License-Identifier: Apache-2.0
//
// What stands in a lock file, read and rewritten: the ledger and a migration's record. Who wants
// it whole holds the guard byte; who does not may meet a write half done, and reads again.
#pragma once

#include <array>
#include <string>

#include "backends/local/error.hpp"
#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// The guard byte, taken by the caller, given back on every way out.
class Guard {
 public:
  explicit Guard(LockFile& file) : file_(file) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { file_.unlock(kGuardByte); }

 private:
  LockFile& file_;
};

/// `bytes` is kFrontSize long and outlives `front`, whose name lies in it.
Failure read_front(const LockFile& file, const std::string& path, Bytes bytes, Front& front);
/// Of a file whose front says that there is a Move. `record`: empty if there is none.
Failure read_move(const LockFile& file, const std::string& path, Move& move, std::string& record);

struct LockContents {
  std::array<unsigned char, kFrontSize> bytes{};
  Front front;
  Move move;
  std::string record;
};
Failure read_contents(const LockFile& file, const std::string& path, LockContents& contents);
/// The same without the guard.
Failure read_contents_unguarded(const LockFile& file, const std::string& path,
                                LockContents& contents);

/// Where the steps of a migration work: an open file of their own, the guard taken. They may block.
struct GuardedFile {
  LockFile& file;
  const std::string& path;
  const std::string& name;  ///< of the lock
  const Directory& directory;
};

RecordAnswer read_record(const GuardedFile& guarded);
/// `ticket`: of the granted claim. Its byte must be locked by somebody, and nobody else can.
/// `gate` may be null, here and below.
RecordAnswer write_seal(const GuardedFile& guarded, std::uint64_t ticket, std::string_view record,
                        const GateCheck* gate);
/// An empty `to` opens the lock: tickets up to `min_token` grant nothing any more.
RecordAnswer replace_record(const GuardedFile& guarded, std::string_view from, std::string_view to,
                            std::uint64_t min_token, const GateCheck* gate);
RecordAnswer raise_tickets(const GuardedFile& guarded, std::uint64_t ticket,
                           std::uint64_t min_token);

}  // namespace dlock::local

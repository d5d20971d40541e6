// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the contents of a lock file: the ledger and a migration's record. With the guard
// byte a read is consistent. Without it a read may find a half-finished write, and is repeated.
#pragma once

#include <array>
#include <string>

#include "backends/local/error.hpp"
#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// The guard byte: the caller locks it, the destructor unlocks it.
class Guard {
 public:
  explicit Guard(LockFile& file) : file_(file) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { file_.unlock(kGuardByte); }

 private:
  LockFile& file_;
};

/// `bytes` is kFrontSize long and outlives `front`, whose name points into it.
Failure read_front(const LockFile& file, const std::string& path, Bytes bytes, Front& front);
/// For a file whose front says that there is a Move. `record`: empty if there is none.
Failure read_move(const LockFile& file, const std::string& path, Move& move, std::string& record);

struct LockContents {
  std::array<unsigned char, kFrontSize> bytes{};
  Front front;
  Move move;
  std::string record;
};
Failure read_contents(const LockFile& file, const std::string& path, LockContents& contents);
/// As read_contents(), without the guard.
Failure read_contents_unguarded(const LockFile& file, const std::string& path,
                                LockContents& contents);

/// The place where the steps of a migration work: a separate open file, the guard locked. They may
/// block.
struct GuardedFile {
  LockFile& file;
  const std::string& path;
  const std::string& name;  ///< the lock's name
  const Directory& directory;
};

RecordAnswer read_record(const GuardedFile& guarded);
/// `ticket`: the granted claim's. Its byte must be locked, which only its owner can do. `gate` may
/// be null, here and below.
RecordAnswer write_seal(const GuardedFile& guarded, std::uint64_t ticket, std::string_view record,
                        const GateCheck* gate);
/// An empty `to` opens the lock: tickets up to `min_token` grant nothing from then on.
RecordAnswer replace_record(const GuardedFile& guarded, std::string_view from, std::string_view to,
                            std::uint64_t min_token, const GateCheck* gate);
RecordAnswer raise_tickets(const GuardedFile& guarded, std::uint64_t ticket,
                           std::uint64_t min_token);

}  // namespace dlock::local

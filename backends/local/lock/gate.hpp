// SPDX-License-Identifier: Apache-2.0
//
// A plan's gate is a note. A claim first locks the byte of its ticket and then reads the gate. A
// process that changes the gate, and reads the tickets after that, sees every claim that has read
// the old text. Seals, and changes of seals, are written while the gate is kept unchanged. May
// block: helper thread, except for other_gate(), which reads one small file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// Empty: the gate is as expected. `failure`: it cannot be read.
std::optional<std::string> other_gate(const Directory& directory, const GateCheck& expected,
                                      Failure& failure);

/// Keeps the gate as expected, or returns why it cannot. `expected` null: nothing is kept.
class HeldGate {
 public:
  HeldGate(const Directory& directory, const GateCheck* expected);
  HeldGate(const HeldGate&) = delete;
  HeldGate& operator=(const HeldGate&) = delete;
  ~HeldGate();
  /// Nothing may be written.
  const std::optional<RecordAnswer>& refusal() const noexcept { return refusal_; }

 private:
  LockFile writers_;
  std::optional<RecordAnswer> refusal_;
};

/// Returns all locks below `prefix` that have a ticket and no record. A file that cannot be read is
/// a failure: it might be one of them.
Result<std::vector<std::string>> read_claimed(const Directory& directory,
                                              const std::string& prefix);
/// Returns a ticket that is not below any ticket, past or present, of any file.
Result<std::uint64_t> read_highest(const Directory& directory);

}  // namespace dlock::local

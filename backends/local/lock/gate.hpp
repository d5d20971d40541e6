// SPDX-License-Identifier: Apache-2.0
//
// A plan's gate is a note. A claim locks the byte of its ticket first and reads the gate then: who
// turns the gate and looks at the tickets after that sees every claim that has read the old text.
// Seals, and what opens them, are written while the gate is kept from turning. May block: helper
// thread, except for other_gate(), which reads one small file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// Empty: it is as expected. `failure`: it cannot be read.
std::optional<std::string> other_gate(const Directory& directory, const GateCheck& expected,
                                      Failure& failure);

/// The gate as it was expected, kept so; or why not. `expected` null: there is none to keep.
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

/// Of all locks below `prefix` without a record that somebody has a ticket of. A file that cannot
/// be read is a failure: it might be one.
Result<std::vector<std::string>> read_claimed(const Directory& directory,
                                              const std::string& prefix);
/// No ticket of any file is above it, and none was.
Result<std::uint64_t> read_highest(const Directory& directory);

}  // namespace dlock::local

// SPDX-License-Identifier: Apache-2.0
//
// A grant that changes process: one process takes the lock and exports the grant as a text
// (LockHandle::export_grant()), another adopts it (LockManager::adopt()) and gives it back. The
// lock is never free in between, and never do both hold it.
//
//   std::string text = held.export_grant({.within = 30s});   // we do not hold it any more
//   dlock::LockHandle held = locks.adopt(text);              // elsewhere: with a higher token
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "dlock/error.hpp"

namespace dlock::inline v0 {

struct ExportOptions {
  /// How long the exporter keeps the lock for whoever adopts it; then it is given back. 1ms to 24h,
  /// else `invalid_argument`.
  std::chrono::milliseconds within = std::chrono::seconds(30);

  /// Where to write what the error code cannot say. Must outlive the call. Default: nowhere.
  Diagnostics* diagnostics = nullptr;
};

/// What the text of an exported grant says of itself. The text is a secret: whoever has it may
/// adopt the grant. This is not: no part of it lets anybody do so.
struct ExportedGrant {
  std::string name;         ///< of the lock
  std::string store;        ///< in the exporter's configuration
  std::uint64_t token = 0;  ///< of the exporter; who adopts has a higher one

  /// No text is longer.
  static constexpr std::size_t kLongestText = 4096;

  /// One line break at its end does not matter. Throws LockError{invalid_argument} with what is
  /// wrong with it, and nothing of the text itself.
  static ExportedGrant read(std::string_view text);
};

}  // namespace dlock::inline v0

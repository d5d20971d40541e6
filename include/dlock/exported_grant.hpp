// SPDX-License-Identifier: Apache-2.0
//
// A grant that moves to another process. One process acquires the lock and exports the grant as a
// text (LockHandle::export_grant()). Another process adopts it (LockManager::adopt()) and releases
// it. The lock is never free in between, and the two processes never hold it at the same time.
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
  /// How long the exporter keeps the lock for a process that adopts it; then it is released. 1ms to
  /// 24h, else `invalid_argument`.
  std::chrono::milliseconds within = std::chrono::seconds(30);

  /// Where to write what the error code cannot say. Must outlive the call. Default: nowhere.
  Diagnostics* diagnostics = nullptr;
};

/// The readable part of the text of an exported grant. The text is a secret: a process that has the
/// text can adopt the grant. This part is not a secret: it does not allow an adoption.
struct ExportedGrant {
  std::string name;         ///< the lock's name
  std::string store;        ///< in the exporter's configuration
  std::uint64_t token = 0;  ///< the exporter's; the adopter's is higher

  /// No text is longer.
  static constexpr std::size_t kLongestText = 4096;

  /// Reads the text. One line break at its end is ignored. Throws LockError{invalid_argument} with
  /// the reason, and without any part of the text.
  static ExportedGrant read(std::string_view text);
};

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// Somebody else who wants the lock, in a process of his own: `PROGRAM --contract-peer URL NAME
// MODE`. Says `held TOKEN` once it has the lock, or `refused WHY`; gives it back, or stops waiting,
// at the end of its input or on SIGTERM. When it is told of a loss it says `lost REASON` and ends
// with kPeerStatusLost.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "dlock/lock_manager.hpp"
#include "dlock/mode.hpp"

namespace dlock::contract {

inline constexpr const char* kPeerFlag = "--contract-peer";
inline constexpr std::string_view kPeerHolds = "held ";
inline constexpr std::string_view kPeerLost = "lost ";
inline constexpr std::string_view kPeerRefused = "refused ";
inline constexpr std::string_view kPeerExports = "exported ";
inline constexpr int kPeerStatusLost = 76;

/// Of a lock in a mode, or of some permits of a semaphore.
struct PeerKind {
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 0;
  std::uint32_t limit = 0;
  bool exports = false;     ///< what it has: says `exported TEXT`
  std::string adopts = {};  ///< the text of such a grant

  /// `exclusive`, `shared`, `2/5`, `export`, or the text that it adopts.
  std::string text() const;
  static PeerKind parse(const std::string& text);
  std::shared_ptr<DistributedLock> lock(LockManager& manager, const std::string& name) const;
};

/// The peer's exit status.
int run_peer(const std::string& url, const std::string& name, const PeerKind& kind);

}  // namespace dlock::contract

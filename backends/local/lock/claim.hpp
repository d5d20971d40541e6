// SPDX-License-Identifier: Apache-2.0
//
// A claim on a lock file: its descriptor, its ticket, and how far it has come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/lock/local_queue.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::local {

class LocalClaim final : public Claim {
 public:
  enum class State {
    none,     ///< nothing of ours in the store, but perhaps an open file
    waiting,  ///< a ticket, its byte locked
    granted,
  };

  LocalClaim(ClaimRequest request, Env& env);
  LocalClaim(ClaimRequest request, Env& env, std::string its_file);
  int inheritable_descriptor() const noexcept override {
    return state == State::granted ? file.descriptor() : -1;
  }

  const std::string file_name;
  State state = State::none;
  LockFile file;
  std::uint64_t ticket = 0;
  /// While waiting: tickets from the first that is in use to ours, as far as the last look showed.
  std::uint64_t ahead = 0;
  std::shared_ptr<LocalQueue> queue;  ///< while waiting or granted; before, if the file was kept
  /// The file is not the lock's any more: removed or replaced.
  bool gone = false;
  /// Nobody is before us, and nobody can come before us.
  bool is_next = false;
  bool interrupted = false;
  /// The last answer was that a record stands before us.
  bool sealed = false;
  /// Another of this process has met one.
  bool maybe_sealed = false;
  /// Of permits, whose `file` has their bytes: its place in the line for them; null: a lock.
  std::shared_ptr<LocalClaim> guard;
  std::vector<std::uint64_t> slots;  ///< once granted: which of the bytes
  bool was_told = false;             ///< a moment ago, perhaps a little too early
  Signal signal;
};

}  // namespace dlock::local

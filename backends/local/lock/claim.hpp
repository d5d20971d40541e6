// SPDX-License-Identifier: Apache-2.0
//
// A claim on a lock file: its descriptor, its ticket, and its state.
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
    none,     ///< no ticket in the store, but perhaps an open file
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
  /// While waiting: the number of tickets from the first one in use to this one, at the last check.
  std::uint64_t ahead = 0;
  std::shared_ptr<LocalQueue> queue;  ///< while waiting or granted; before, if the file was kept
  /// The file does not belong to the lock any more: it was removed or replaced.
  bool gone = false;
  /// No claim is before this one, and none can be.
  bool is_next = false;
  bool interrupted = false;
  /// The last answer was that a record is before this claim.
  bool sealed = false;
  /// Another claim of this process has found one.
  bool maybe_sealed = false;
  /// The place in the line for permits, if `file` has permits. Null: a lock.
  std::shared_ptr<LocalClaim> guard;
  std::vector<std::uint64_t> slots;  ///< once granted: which of the bytes
  bool was_told = false;             ///< notified a moment ago, perhaps a little too early
  Signal signal;
};

}  // namespace dlock::local

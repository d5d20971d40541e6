// SPDX-License-Identifier: Apache-2.0
//
// SequencerCheck: the guarded resource's own side, in memory: of each lock name the highest token
// seen is remembered, and lower ones are refused. It asks nobody, and so stands when the store is
// out of reach.
//
// Hazards. It forgets when the process ends: a resource that outlives its process keeps the token
// with its data (docs/fencing.md, <dlock/fenced_register.hpp>). And it decides before the work is
// done, not with it: hold one mutex over admit() and the write that it lets through, or a write
// that was admitted first may still come last.
//
// And it believes what it is given: whoever can send forged sequencers shuts right holders out,
// with many of them of all names (floor()). Where strangers can, take signed ones only
// (Sequencer::parse_signed).
//
//   if (check.admit(sequencer) != dlock::SequencerCheck::Verdict::admitted) return 409;
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "dlock/sequencer.hpp"

namespace dlock::inline v0 {

/// Thread safety: all members may be called from any thread at the same time.
class SequencerCheck {
 public:
  enum class Verdict {
    admitted,  ///< no lower than any seen of this name that counts for its mode; remembered
    stale,     ///< a higher one of this name has been seen
    /// This name is not remembered (any more), and the token is below floor(): whether a higher
    /// one was seen cannot be told, so it is refused.
    below_floor,
  };

  /// Remembers at most `most_names` names, about 200 bytes each beside the name; at least one.
  /// When there are more, the name with the lowest token is forgotten, and no name that is not
  /// remembered is admitted below that token from then on (floor()). So a forgotten name never
  /// admits what it had refused. Where tokens of all names come from one counter or clock
  /// (ZooKeeper, Redis, Memcached), a new grant is always above the floor, and nobody is refused
  /// for being forgotten. Where each name counts for itself (local files), a new name begins below
  /// it: give room for all names there.
  explicit SequencerCheck(std::size_t most_names = 100'000);
  ~SequencerCheck();
  SequencerCheck(const SequencerCheck&) = delete;
  SequencerCheck& operator=(const SequencerCheck&) = delete;

  /// Compares and remembers in one step. The same token may come any number of times. The store's
  /// name is not looked at: after a move to another store the tokens must go on rising.
  /// Of mode shared: readers hold the lock together, so that a reader is refused by a higher token
  /// of mode exclusive only, never by another reader's. One of mode exclusive is refused by any.
  Verdict admit(const Sequencer& sequencer) {
    return admit(sequencer.name(), sequencer.token(), sequencer.mode());
  }
  Verdict admit(std::string_view name, std::uint64_t token, Mode mode = Mode::exclusive);

  /// The highest token that was forgotten; 0: none was.
  std::uint64_t floor() const;
  /// How many names are remembered.
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

const char* to_string(SequencerCheck::Verdict value) noexcept;

}  // namespace dlock::inline v0

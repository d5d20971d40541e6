// SPDX-License-Identifier: Apache-2.0
//
// SequencerCheck: checks tokens in memory, on the side of the guarded resource. It remembers the
// highest token seen of each lock name, and refuses lower ones. It does not ask the store, so it
// works while the store is out of reach.
//
// Hazards. It forgets when the process ends: a resource that outlives its process keeps the token
// with its data (docs/fencing.md, <dlock/fenced_register.hpp>). It decides before the work is done,
// not with it. Hold one mutex over admit() and the write that it admits, or a write that was
// admitted first may be done last.
//
// It trusts every sequencer. A client that sends forged sequencers can shut the right holders out,
// with many of them for all names (floor()). If strangers can reach the service, accept signed
// sequencers only (Sequencer::parse_signed).
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
    /// This name is not remembered (any more), and the token is below floor(). A higher one may
    /// have been seen, so it is refused.
    below_floor,
  };

  /// Remembers at most `most_names` names, about 200 bytes each beside the name; at least one.
  /// Beyond that, the name with the lowest token is forgotten. From then on a name that is not
  /// remembered is not admitted below that token (floor()). So a forgotten name never admits a
  /// token that it had refused. Where the tokens of all names come from one counter or clock
  /// (ZooKeeper, Redis, Memcached), a new grant is always above the floor. No client is refused
  /// there because its name was forgotten. Where each name counts separately (local files), a new
  /// name begins below the floor: make room for all names there.
  explicit SequencerCheck(std::size_t most_names = 100'000);
  ~SequencerCheck();
  SequencerCheck(const SequencerCheck&) = delete;
  SequencerCheck& operator=(const SequencerCheck&) = delete;

  /// Compares and remembers in one step. The same token is admitted any number of times. The
  /// store's name is not compared: after a move to another store the tokens must continue to rise.
  /// In mode shared several readers hold the lock: only a higher token of mode exclusive refuses a
  /// reader, never another reader's. A higher token of any mode refuses mode exclusive.
  Verdict admit(const Sequencer& sequencer) {
    return admit(sequencer.name(), sequencer.token(), sequencer.mode());
  }
  Verdict admit(std::string_view name, std::uint64_t token, Mode mode = Mode::exclusive);

  /// The highest token that was forgotten; 0: none was.
  std::uint64_t floor() const;
  /// Number of remembered names.
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

const char* to_string(SequencerCheck::Verdict value) noexcept;

}  // namespace dlock::inline v0

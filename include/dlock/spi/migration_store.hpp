// SPDX-License-Identifier: Apache-2.0
//
// What a store does for those who move its locks to another one. Optional: a backend that takes no
// part in migrations reads nothing here.
//
// A lock that has moved has a record in its place, which everybody who locks the name meets. Beside
// the locks there are notes: what a plan is about, and its gate, which says what is to be done with
// every lock of a pattern that has no record of its own. Records and notes are texts of the layer
// above; a store keeps them whole and compares them byte by byte.
//
// Of every call:
//  - reads are linearizable: never what an earlier write had replaced, nor what a crash of its
//    writer could still undo;
//  - texts have up to kLongestRecord bytes; an empty one and none are the same;
//  - one plan at a time works on a name, and no two records of a name are ever equal;
//  - after `unknown` a write may still be carried out for as long as any late request. Who asked
//    reads, and does not repeat it with another text before the old one is out of date: the
//    comparison makes a late copy harmless then.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::inline v0 {

namespace asio = boost::asio;

/// What the holder of a plan believes of its gate: one note of the store. Compared with what stands
/// there in the same atomic step as the write that it is given to; no note and an empty one are the
/// same. A text never comes back once it was replaced, and the note is never taken away while
/// anybody may still ask under it: both are the caller's promise, not the store's.
struct GateCheck {
  std::string key;
  std::string text;
  /// Of a claim only. Not empty: this claim may not hold. Where a store can, it writes this record
  /// in the lock's place in the step that would have granted it, with the token that it would have
  /// got in place of each kTokenPlace, and answers `sealed` with what it wrote. Where it cannot it
  /// answers `granted`, and the claimant seals.
  std::string seal;
};
inline constexpr std::string_view kTokenPlace = "{token}";

enum class RecordStatus {
  done,
  conflict,     ///< not done: it is not as was expected; `found`, or `gate`, is what stands there
  unavailable,  ///< surely not done
  unknown,      ///< maybe done: read it
  failed,       ///< surely not done, and trying again will not help
};

/// Of a record or a note, in bytes.
inline constexpr std::size_t kLongestRecord = 65'536;

struct RecordAnswer {
  RecordStatus status = RecordStatus::unavailable;
  /// Of a read, and of a conflict. Empty: there is none.
  std::optional<std::string> found;
  Failure failure;
  /// Of a conflict with a gate alone, the rest being as was expected: its present text.
  std::optional<std::string> gate{};
};

/// Runs on the loop of its backend, and lives as long. Which of the calls work is declared
/// (Capabilities::can_seal, can_raise, can_gate); one that does not answers `failed` with
/// errc::not_supported, as all of this class do unless they are overridden.
class MigrationStore {
 public:
  virtual ~MigrationStore() = default;

  /// Effect: reads the record of `name`; `found` empty: the lock is a lock.
  virtual asio::awaitable<RecordAnswer> record(std::string name, TimePoint deadline);

  /// Effect: writes `record` in the place of a granted claim, under the token that it was granted
  /// with (a late copy of its request may have been granted again). The claim is over with it,
  /// nobody is told that it is lost, and a release() does no harm. Everybody who locks this name
  /// meets it, clients other than dlock and those who wait already, too: the first of these is
  /// woken, another at the latest when those before it have left.
  /// Atomic with: the check that the claim still is ours; of a claim that was made under a gate
  /// also the check of the gate.
  /// Unknown: read it.
  /// Conflict: nothing was written. The claim is not ours, and `found` is the record that stands
  /// there, if one does; or the gate has changed (`gate`), and the claim is as it was.
  virtual asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record, TimePoint deadline);

  /// Effect: replaces the record `from` by `to`, and wakes whoever waits behind it. An empty `to`
  /// opens the lock again, with all later tokens above `min_token` (else it is not used); whoever
  /// waits behind the record goes on.
  /// Atomic with: the comparison with `from`.
  /// Unknown: read it.
  /// Conflict: another record stands there, or none. The default: set_record_under() without a
  /// gate.
  virtual asio::awaitable<RecordAnswer> set_record(std::string name, std::string from,
                                                   std::optional<std::string> to,
                                                   std::uint64_t min_token, TimePoint deadline);

  /// Effect: while the claim is held: all later tokens of its name are above `min_token`. Its own
  /// stays.
  /// Atomic with: the check that the claim is ours.
  /// Unknown: repeat it.
  /// Conflict: the claim is not ours.
  virtual asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                              TimePoint deadline);

  /// Effect: reads a note: a small text that outlives every lock, beside the locks and never in
  /// their way. `key` is a lock name. As durable as the store.
  virtual asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline);

  /// Effect: replaces the note `from` by `to`; an empty text stands for no note, on either side.
  /// Atomic with: the comparison with `from`.
  /// Unknown: read it.
  /// Conflict: another note stands there (`found`), or none.
  virtual asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                                 std::optional<std::string> to, TimePoint deadline);

  /// Effect: the time of day since 1970 by the store's own clock, somewhen between this call and
  /// its answer: for moments that several processes compare, as those of scheduled runs in notes.
  /// Every process that reaches the store must be told one clock's time, whatever its own says.
  /// Unknown: never; nothing that anybody sees is changed.
  /// Unless overridden: not_supported, and there are no scheduled runs on this store.
  virtual asio::awaitable<Result<std::chrono::milliseconds>> time(TimePoint deadline);

  // A plan's gate (see Capabilities::can_gate): what is done only while a note says what the caller
  // believes. A gate is made and turned by set_note(). What a turn promises: from its answer on no
  // claim that asks under an older text enters the store, and no write under one is made. A claim
  // that entered before it may be granted after it ("it waited"), or be answered `gate_changed`
  // then, as the store likes; claimed_names() shows each of them that may still be granted. A
  // record in the lock's place is answered first, whatever the gate says. How each store does it:
  //
  //   store      claim + check                     list sees                    seals + check
  //   zookeeper  transaction: the gate's version,  children of all nodes,       transaction
  //              the node; when it enters          after a write
  //   redis      the script, at each request       lock keys: who waits is      the script
  //              until it holds; seals at once     asked again at the hand-over
  //              (a cluster is refused)
  //   local      a ticket, then the gate is read   tickets of all files         the gate's lock,
  //              (until then: the old one)                                      shared
  //   memory     the mutex, when it enters;        queues                       the mutex
  //              seals at once if it is free

  /// Effect: as set_record().
  /// Atomic with: the comparison with `from`, and with the gate.
  /// Unknown: read it.
  /// Conflict: as set_record(); or the record is as was expected, and the gate is not (`gate`).
  virtual asio::awaitable<RecordAnswer> set_record_under(GatePtr gate, std::string name,
                                                         std::string from,
                                                         std::optional<std::string> to,
                                                         std::uint64_t min_token,
                                                         TimePoint deadline);

  /// Effect: the names, sorted, of all locks below `prefix` (all: empty) that have no record and
  /// that a claim which entered before this call holds, or may still be granted, by dlock or by
  /// another client; and perhaps others, never too few. Whose claims these are, inspect() tells.
  virtual asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                          TimePoint deadline);

  /// Effect: at least every token that the store has given before this call, of whichever lock,
  /// also of locks that it keeps nothing of any more.
  virtual asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint deadline);
};

/// Of a backend that takes no part in migrations: every call is not supported.
MigrationStore& no_migration() noexcept;

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// The calls of a store for moving its locks to another store. Optional: a backend without
// migrations implements nothing here.
//
// A lock that has moved has a record in its place, which every client that locks the name reads.
// Beside the locks there are notes: the content of a plan, and its gate. The gate says what is to
// be done with every lock of a pattern that has no record. Records and notes are texts of the layer
// above; a store keeps them whole and compares them byte by byte.
//
// All calls have these rules:
//  - reads are linearizable: never a text that an earlier write had replaced, nor one that a
//    crash of its writer could still undo;
//  - texts have up to kLongestRecord bytes; an empty one and none are the same;
//  - one plan at a time works on a name, and no two records of a name are ever equal;
//  - after `unknown` a write may still be carried out as late as any late request. The caller
//    reads, and does not repeat the write with another text before the old text is out of date:
//    the comparison then makes a late copy harmless.
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

/// The expected gate of a plan: one note of the store. It is compared with the stored note in the
/// atomic step of the write that it is passed to. No note and an empty one are the same. The caller
/// promises two things: a replaced text is never used again, and the note is not removed while a
/// claim may still use it.
struct GateCheck {
  std::string key;
  std::string text;
  /// For claims only. Not empty: this claim may not hold. A store that can, writes this record in
  /// the lock's place in the step that would have granted the claim. It replaces each kTokenPlace
  /// by the token of that grant, and answers `sealed` with the written record. Another store
  /// answers `granted`, and the claimant seals.
  std::string seal;
};
inline constexpr std::string_view kTokenPlace = "{token}";

enum class RecordStatus {
  done,
  conflict,     ///< not done: the stored text (`found`, or `gate`) is not the expected one
  unavailable,  ///< surely not done
  unknown,      ///< maybe done: read it
  failed,       ///< surely not done, and another try will not help
};

/// Longest record or note, in bytes.
inline constexpr std::size_t kLongestRecord = 65'536;

struct RecordAnswer {
  RecordStatus status = RecordStatus::unavailable;
  /// After a read, and after a conflict: the stored text. Empty: none.
  std::optional<std::string> found;
  Failure failure;
  /// After a conflict with only the gate: its present text.
  std::optional<std::string> gate{};
};

/// Runs on the loop of its backend, and lives with it. The backend declares which calls work
/// (Capabilities::can_seal, can_raise, can_gate). The others answer `failed` with
/// errc::not_supported, as all members of this class do unless overridden.
class MigrationStore {
 public:
  virtual ~MigrationStore() = default;

  /// Effect: reads the record of `name`; `found` empty: the lock is a lock.
  virtual asio::awaitable<RecordAnswer> record(std::string name, TimePoint deadline);

  /// Effect: writes `record` in the place of a granted claim, under the token of its grant. (A late
  /// copy of its request may have been granted again.) The claim ends without a loss report, and a
  /// release() is harmless. Every client that locks this name reads the record, also foreign
  /// clients and the present waiters. The first of these is woken, another at the latest when those
  /// before it have left.
  /// Atomic with: the check that the claim is still held; for a claim that was made under a gate
  /// also the check of the gate.
  /// Unknown: read it.
  /// Conflict: nothing was written. Either the claim is not held, and `found` is the record in its
  /// place, if any. Or the gate has changed (`gate`), and the claim is unchanged.
  virtual asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record, TimePoint deadline);

  /// Effect: replaces the record `from` by `to`, and wakes the waiters behind it. An empty `to`
  /// opens the lock again, with all later tokens above `min_token` (else it is not used); the
  /// waiters behind the record continue.
  /// Atomic with: the comparison with `from`.
  /// Unknown: read it.
  /// Conflict: the stored record is another one, or none. The default: set_record_under() without a
  /// gate.
  virtual asio::awaitable<RecordAnswer> set_record(std::string name, std::string from,
                                                   std::optional<std::string> to,
                                                   std::uint64_t min_token, TimePoint deadline);

  /// Effect: while the claim is held: all later tokens of its name are above `min_token`. Its own
  /// token does not change.
  /// Atomic with: the check that the claim is held.
  /// Unknown: repeat it.
  /// Conflict: the claim is not held.
  virtual asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                              TimePoint deadline);

  /// Effect: reads a note: a small text that outlives every lock, beside the locks and never in
  /// their way. `key` is a lock name. As durable as the store.
  virtual asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline);

  /// Effect: replaces the note `from` by `to`; an empty text stands for no note, on either side.
  /// Atomic with: the comparison with `from`.
  /// Unknown: read it.
  /// Conflict: the stored note is another one (`found`), or none.
  virtual asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                                 std::optional<std::string> to, TimePoint deadline);

  /// Effect: reads the time of day since 1970 from the store's own clock, between this call and its
  /// answer. For moments that several processes compare, such as those of scheduled runs in notes.
  /// Every process that reaches the store must get the time of one clock, whatever its own clock
  /// shows.
  /// Unknown: never; the call changes nothing.
  /// Unless overridden: not_supported, and the store has no scheduled runs.
  virtual asio::awaitable<Result<std::chrono::milliseconds>> time(TimePoint deadline);

  // A plan's gate (see Capabilities::can_gate): some calls are carried out only while a note has
  // the text that the caller expects. A gate is created and changed by set_note(). From the answer
  // to a change on, no claim that uses an older text enters the store, and no write under an older
  // text is made. A claim that entered before may be granted after it ("it waited"), or be answered
  // `gate_changed`, as the store prefers; claimed_names() shows each of them that may still be
  // granted. A record in the lock's place is answered first, whatever the gate says. How each store
  // does it:
  //
  //   store      claim + check                     list sees                    seals + check
  //   zookeeper  transaction: the gate's version,  children of all nodes,       transaction
  //              the node; when it enters          after a write
  //   redis      the script, at each request       lock keys: a waiter asks     the script
  //              until it holds; seals at once     again at the hand-over
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

  /// Effect: reads the sorted names of the locks below `prefix` (all: empty) without a record that
  /// a claim holds or may still be granted. It includes every claim, by dlock or another client,
  /// that entered the store before this call. It may include other names. inspect() shows whose
  /// claims these are.
  virtual asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                          TimePoint deadline);

  /// Effect: returns a number that is at least every token granted before this call, of any lock,
  /// also of locks that the store has forgotten.
  virtual asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint deadline);
};

/// Returns the MigrationStore of a backend without migrations: every call is not supported.
MigrationStore& no_migration() noexcept;

}  // namespace dlock::inline v0

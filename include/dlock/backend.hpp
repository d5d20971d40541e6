// SPDX-License-Identifier: Apache-2.0
//
// The SPI: what a store must do for dlock, and what it declares it can do. For authors of
// backends; users of locks never need it. Waiting, retry, deadlines, renewal, re-entry, events and
// metrics live in core/, once, above this line.
//
// The core guarantees to a backend: every call comes on its loop; at most one call per claim is
// outstanding (a release may follow an extend in flight).
// A backend guarantees to the core: every call ends by its deadline; `unavailable` means surely not
// done, `unknown` means maybe done; a validity is never later than the store's patience counted
// from the moment before the request was sent.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/capabilities.hpp"
#include "dlock/clock.hpp"
#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/mode.hpp"

namespace dlock::core {
class Env;
struct ClaimList;
}

namespace dlock::inline v0 {

namespace asio = boost::asio;

/// What the holder of a plan believes of its gate: one note (Backend::note) of the store, which
/// says what is to be done with every lock of a pattern that has no record of its own. Compared
/// with what stands there in the same atomic step as the write that it is given to, byte by byte;
/// no note and an empty one are the same. A text never comes back once it was replaced, and the
/// note is never taken away while anybody may still ask under it: both are the core's promise, not
/// the store's.
struct GateCheck {
  std::string key;
  std::string text;
  /// Of a claim only. Not empty: this claim may not hold. Where a store can, it writes this record
  /// in the lock's place in the step that would have granted it, with the token that it would have
  /// got in place of each kTokenPlace, and answers `sealed` with what it wrote. Where it cannot it
  /// answers `granted`, and the claimant seals.
  std::string seal;
};
using GatePtr = std::shared_ptr<const GateCheck>;
inline constexpr std::string_view kTokenPlace = "{token}";

/// One attempt to get one lock, from its first request until it is released. The same request is
/// repeated until the outcome is known: `owner.id` makes it idempotent.
struct ClaimRequest {
  std::string name;  ///< checked by the core: valid by DESIGN's rules
  Mode mode = Mode::exclusive;
  Owner owner;  ///< owner.id is a lower-case UUID (36 characters), unique per claim
  /// How long the store shall keep a dead holder; meaningful with LeaseScope::claim.
  std::chrono::milliseconds lease{0};
  /// Whether the claimant will wait: a store without places need not leave anything otherwise.
  bool queue = true;
  /// The token must be greater than this.
  std::uint64_t min_token = 0;
  /// Null: nobody asks for a gate, and it costs nothing. Else the claim enters the store only while
  /// the gate is as it says (see Capabilities::can_gate); a store without gates must not be asked.
  GatePtr gate{};
};

/// A claim and whatever its backend keeps about it. Created by Backend::make_claim, kept alive by
/// the core until the last call on it is over. Touched on the loop only.
class Claim {
 public:
  explicit Claim(ClaimRequest request) : number_(++last_number_), request_(std::move(request)) {}
  virtual ~Claim() = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  const ClaimRequest& request() const noexcept { return request_; }
  /// Counts the claims of this process: an order that does not depend on where they lie in memory.
  std::uint64_t number() const noexcept { return number_; }
  /// Its holder was told that it lost the lock: what the store still has of it may stay for the
  /// store's lock delay, if there is one. Set by the core before release(), never for a lock that
  /// was given back.
  bool is_lost() const noexcept { return lost_; }
  void mark_lost() noexcept { lost_ = true; }

 private:
  friend struct core::ClaimList;
  inline static std::atomic<std::uint64_t> last_number_{0};
  const std::uint64_t number_;
  ClaimRequest request_;
  bool lost_ = false;
  std::shared_ptr<Claim> next_;  ///< the core's: a list of claims that takes no memory
};
using ClaimPtr = std::shared_ptr<Claim>;

/// Until when the store keeps a claim without further news from us.
struct Validity {
  /// The store's own patience, counted from before sending; kNever without a lease. The core takes
  /// its drift margin off.
  TimePoint until = kNever;
  /// When to extend. kNever: never. Per claim: usually a third of the lease after sending.
  TimePoint renew_at = kNever;
};

/// The part common to all answers: what failed, for the user.
struct Failure {
  error_code error;  ///< in the backend's own category
  std::string text;  ///< the server's or the system's words; never a secret
};

enum class ClaimStatus {
  granted,  ///< ours, with token and validity
  waiting,  ///< we have a place in the store and wait in it: call wait(), then claim() again
  busy,     ///< somebody else holds it and nothing of ours is left: wait(), then claim() again
  sealed,   ///< a migration's record stands in the lock's place: nobody holds it here. Something
            ///< of ours may stand behind the record: release() withdraws it; wait() returns when
            ///< the record may have changed
  gate_changed,  ///< the gate is not as the claim says, no record stands there, and nothing of ours
                 ///< is left: a claim under what it is now may follow
  unavailable,   ///< surely not done; try again
  unknown,       ///< maybe done; claim() again with the same claim, or release() it
  failed,        ///< surely not done, and trying again will not help
};

struct ClaimAnswer {
  ClaimStatus status = ClaimStatus::unavailable;
  std::optional<std::uint64_t> token;
  Validity validity;
  std::string record;  ///< of `sealed`; of `gate_changed`: the gate's present text
  Failure failure;
};

enum class ExtendStatus {
  extended,
  gone,         ///< no longer ours, for `reason`
  unavailable,  ///< surely not done
  unknown,      ///< maybe done; the old validity counts
};

struct ExtendAnswer {
  ExtendStatus status = ExtendStatus::unavailable;
  Validity validity;
  LossReason reason = LossReason::none;
  Failure failure;
};

enum class ReleaseStatus {
  released,     ///< it was ours and is gone, or nothing of ours was there (withdrawal)
  not_holder,   ///< it was granted to us once and had gone before this release
  refused,      ///< surely not done: the store does not let us. Told to the caller, tried again
  unavailable,  ///< surely not done; the core tries again until the lease is over
  unknown,      ///< maybe done; likewise
};

struct ReleaseAnswer {
  ReleaseStatus status = ReleaseStatus::unavailable;
  Failure failure;
};

/// Of the calls that move a lock from one store to another. The record and the notes are texts of
/// migration/: a backend keeps them whole and compares them byte by byte. No two
/// records of a name are ever equal.
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

/// What happens unasked. Implemented by the core; called on the loop only.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// The server can be reached again; claims that were waiting still are.
  virtual void on_link_up() = 0;
  /// Held locks become suspect; their validity stands.
  virtual void on_link_down(const Failure& why) = 0;
  /// Every claim of the session is gone: held ones are lost, waiting ones must be made anew.
  virtual void on_session_gone(LossReason why) = 0;
  /// A granted claim is no longer ours.
  virtual void on_claim_gone(const ClaimPtr& claim, LossReason why) = 0;
  /// The capabilities changed (another server, another setting). `require` is checked again.
  virtual void on_capabilities_changed() = 0;
  /// For the log: something an operator should know.
  virtual void on_warning(std::string_view text) = 0;
};

template <class T>
struct Result {
  std::optional<T> value;  ///< empty on failure
  Failure failure;
};

/// One store, reached. All members run on the loop of `Env::executor()`.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Reaches the server, inspects its settings and computes capabilities(). Called before any other
  /// call, and again after a failure; not concurrently. A clear `error` is success.
  virtual asio::awaitable<Failure> connect(TimePoint deadline) = 0;

  /// Why the server cannot be reached at present, as far as an attempt has failed; clear while it
  /// can be, and while the first attempt is under way. For whoever asks while connect() goes on
  /// trying: it tells a store that is down from one that is slow. No I/O.
  virtual Failure link_failure() const { return {}; }

  /// What the store promises as configured. Valid after connect().
  virtual const Capabilities& capabilities() const noexcept = 0;

  /// No I/O.
  virtual ClaimPtr make_claim(ClaimRequest request) = 0;

  /// Asks for the lock, or asks how the claim stands. Idempotent per owner id.
  virtual asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) = 0;

  /// Returns when claim() should be called again: the lock may be free, the session is gone, a poll
  /// is due, interrupt() was called, or the deadline is reached. Survives a lost link.
  virtual asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) = 0;
  /// Ends a wait() on this claim soon. Harmless if there is none.
  virtual void interrupt(Claim& claim) noexcept = 0;

  /// Renews granted claims; one answer for each, in order. With a session lease the claims are all
  /// that are held and one heartbeat renews them; without a lease it is never called.
  virtual asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                            TimePoint deadline) = 0;

  /// Gives back a granted claim if it is still ours, or withdraws a waiting or unknown one.
  /// `search`: also look for copies of a request whose outcome was unknown and that may have
  /// arrived late.
  virtual asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search,
                                                 TimePoint deadline) = 0;

  virtual asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) = 0;
  virtual asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                                TimePoint deadline) = 0;
  /// not_holder: held with another token; not_found: not held; moving: a record stands there.
  virtual asio::awaitable<Failure> evict(std::string name, std::uint64_t token,
                                         TimePoint deadline) = 0;

  // Migration (optional; see Capabilities::can_seal and can_raise). One plan at a time works on a
  // name. Every read is linearizable: it never answers what an earlier write had replaced, nor what
  // a crash of the writer could still undo. Texts are up to kLongestRecord bytes; an empty one and
  // none are the same. After `unknown` a write may still be carried out for as long as any late
  // request; read, and do not repeat a write with another text before the old one is out of date:
  // the comparison makes a late copy harmless then.

  /// The record of `name`; `found` empty: the lock is a lock.
  virtual asio::awaitable<RecordAnswer> record(std::string name, TimePoint deadline);
  /// Writes `record` in the place of a granted claim, in one atomic step with the check that the
  /// claim still is ours, under the token that it was granted with (a late copy of its request may
  /// have been granted again); the claim is over with it, nobody is told that it is lost, and a
  /// release() does no harm. It meets everybody who locks this name, clients other than dlock and
  /// those who wait already, too: the first of these is woken, another at the latest when those
  /// before it have left. `conflict`: the claim is not ours, nothing was written; `found` is the
  /// record that stands there, if one does. A claim that was made under a gate seals under it: if
  /// that has changed nothing is written (`gate`), and the claim is as it was.
  virtual asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record, TimePoint deadline);
  /// Replaces the record `from` by `to` in one atomic step, and wakes whoever waits behind it. An
  /// empty `to` opens the lock again, with all later tokens above `min_token` (else it is not
  /// used); whoever waits behind the record goes on. `conflict`: another record stands there, or
  /// none.
  virtual asio::awaitable<RecordAnswer> set_record(std::string name, std::string from,
                                                   std::optional<std::string> to,
                                                   std::uint64_t min_token, TimePoint deadline);
  /// While the claim is held: all later tokens of its name are above `min_token`. Its own stays.
  /// `conflict`: the claim is not ours.
  virtual asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                              TimePoint deadline);
  /// Small texts that outlive every lock, beside the locks and never in their way: what a plan is
  /// about, and that it is finished. `key` is a lock name. As durable as the store.
  virtual asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline);
  /// Compare-and-set; an empty text stands for no note, on either side.
  virtual asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                                 std::optional<std::string> to, TimePoint deadline);

  // A plan's gate (optional; see Capabilities::can_gate): what of the above is done only while a
  // note says what the caller believes. A gate is made and turned by set_note(). What a turn
  // promises: from its answer on no claim that asks under an older text enters the store, and no
  // write under one is made. A claim that entered before it may be granted after it ("it waited"),
  // or be answered `gate_changed` then, as the store likes; claimed_names() shows each of them that
  // may still be granted. A record in the lock's place is answered first, whatever the gate says.
  // How each store does it:
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

  /// set_record() while the gate is as `gate` says. `conflict` with `gate` set: the record is as
  /// was expected, the gate is not.
  virtual asio::awaitable<RecordAnswer> set_record_under(GatePtr gate, std::string name,
                                                         std::string from,
                                                         std::optional<std::string> to,
                                                         std::uint64_t min_token,
                                                         TimePoint deadline);
  /// The names, sorted, of all locks below `prefix` (all: empty) that have no record and that a
  /// claim which entered before this call holds, or may still be granted, by dlock or by another
  /// client; and perhaps others, never too few. Whose claims these are, inspect() tells.
  virtual asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                          TimePoint deadline);
  /// At least every token that the store has given before this call, of whichever lock, also of
  /// locks that it keeps nothing of any more.
  virtual asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint deadline);

  /// Ends the session and all I/O; pending calls complete. No other call follows.
  virtual asio::awaitable<void> close(TimePoint deadline) = 0;

  /// For a command that must keep the lock alive beyond our process, as under flock(1): a
  /// descriptor that holds the granted claim as long as it is open anywhere; -1 where there is no
  /// such thing.
  virtual int inheritable_descriptor(const Claim&) const noexcept { return -1; }
};

/// What a store accepts in its URL and YAML block. The core parses and checks values by it, before
/// the backend sees any.
struct OptionSpec {
  enum class Kind { duration, integer, boolean, text, secret, choice };
  std::string_view name;
  Kind kind = Kind::text;
  /// As it would be written in the configuration; empty: not set.
  std::string_view default_value = {};
  /// Limits of durations (in milliseconds) and integers, inclusive.
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  /// Of a choice, separated by `|`.
  std::string_view choices = {};
  std::string_view help = {};
};

struct Endpoint {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};

/// One store's configuration, parsed and checked against the backend's OptionSpecs.
struct StoreOptions {
  std::string name;    ///< in the configuration
  std::string scheme;  ///< as written: `zookeeper`, `zk`
  std::vector<Endpoint> endpoints;
  std::string path;  ///< decoded, with its leading slash; empty if there was none
  std::string username;
  std::string password;
  std::string app;  ///< what we call ourselves in owner metadata
  /// Every option of the backend that has a value, by name.
  std::map<std::string, std::string, std::less<>> text;
  std::map<std::string, std::int64_t, std::less<>> number;  ///< durations in ms, integers, 0/1
  std::map<std::string, Origin, std::less<>> origin;        ///< only of what the user wrote
  /// Setting::starter_key of those that have one.
  std::map<std::string, std::string, std::less<>> starter_key;

  std::chrono::milliseconds duration(std::string_view option) const;
  std::int64_t integer(std::string_view option) const;
  bool flag(std::string_view option) const;
  const std::string& string(std::string_view option) const;
  bool given(std::string_view option) const { return origin.find(option) != origin.end(); }
};

/// How the rest of dlock learns of a backend. One object per backend, listed by the build.
struct BackendDescriptor {
  std::string_view name;                  ///< `zookeeper`
  std::vector<std::string_view> schemes;  ///< `zookeeper`, `zk`
  enum class Address { hosts, path, name } address = Address::hosts;
  std::uint16_t default_port = 0;
  std::vector<OptionSpec> options;
  /// The option that --lease sets: `session_timeout`, `lease`; empty: there is no lease.
  std::string_view lease_option;
  /// Schemes that users try and that cannot work, with the reason (`zk+tls`).
  std::vector<std::pair<std::string_view, std::string_view>> refused_schemes = {};
  /// Throws LockError{config_invalid} for what the specs cannot express. No I/O. `env` and `sink`
  /// outlive the backend.
  std::unique_ptr<Backend> (*create)(const StoreOptions& options, core::Env& env, EventSink& sink);
  /// Those of `schemes` whose address is a path, whatever `address` says: sockets in the file
  /// system (`redis+unix`).
  std::vector<std::string_view> path_schemes = {};
};

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// The store behind `memory://name`: queues of claims, shared by all managers of the process that
// open the same name. Loops share it, so it has a mutex, the only one in a backend. It is the
// equivalent of another backend's server.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/memory/semaphores.hpp"
#include "dlock/clock.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::memory {

/// Thread safety: all members from any thread. Wake-ups are called without the mutex.
class SharedStore {
 public:
  using Wake = std::function<void()>;
  using Told = std::function<void(const Revocation&)>;
  struct Grant {
    bool granted = false;
    std::uint64_t token = 0;
    std::string record;                 ///< not empty: sealed; a waiter has a place behind it
    std::optional<std::string> gate{};  ///< the text of another gate; then no claim is left behind
    std::size_t waiting_before = 0;
  };
  struct Adopted {
    std::uint64_t token = 0;              ///< the adopter's token; 0: refused
    std::optional<std::uint64_t> holder;  ///< if refused: the token of the current holder
  };
  struct Asked {
    std::uint64_t token = 0;  ///< the holder's token; 0: the lock is free
    bool is_another = false;  ///< it is not the given token, so the holder was not asked
    bool heard = false;
  };
  /// The result of a compare-and-set.
  struct Exchange {
    bool done = false;
    std::string found;                  ///< the stored text, if it is not the expected one
    std::optional<std::string> gate{};  ///< the gate's text, if it is not the expected one
  };

  /// Returns the store of that name; it exists while a manager uses it.
  static std::shared_ptr<SharedStore> get(const std::string& name);

  /// Joins the queue, or returns the claim's state; `wake` is called when the place moved to the
  /// front or the entry was removed. Without `queue`: leaves no entry behind if another claim is in
  /// front.
  Grant claim(const ClaimRequest& request, TimePoint now, Wake wake);
  /// As above, for an exclusive claim without a gate.
  Grant claim(const std::string& lock, const Owner& owner, bool queue, std::uint64_t min_token,
              TimePoint now, Wake wake);
  /// Calls `contended`, once, when another client asks. Returns false, without the call, if one is
  /// waiting already.
  bool tell_contention(const std::string& lock, const std::string& owner_id, Wake contended);
  /// Calls `asked` at each request to release the lock.
  void tell_asked(const std::string& lock, const std::string& owner_id, Told asked);
  /// `token` 0: any holder, the first one.
  Asked ask(const std::string& lock, std::uint64_t token, const Revocation& how);
  /// Returns whether the owner was granted the lock and still holds it.
  bool holds(const std::string& lock, const std::string& owner_id) const;
  /// Changes exclusive to shared. Returns false if the owner does not hold it.
  bool downgrade(const std::string& lock, const std::string& owner_id);
  /// Until then an adopter with that proof may replace the holder. Returns false if the owner does
  /// not hold the lock any more.
  bool offer(const std::string& lock, const std::string& owner_id, std::string proof,
             TimePoint until);
  /// Executes a request with an adoption; wakes the replaced holder.
  Adopted adopt(const ClaimRequest& request, TimePoint now, Wake wake);
  /// Leaves the queue. Returns false if it was not in it.
  bool release(const std::string& lock, const std::string& owner_id);

  /// Calls `changed` when the holder changes or the lock becomes free; the first reader counts.
  /// `watcher` is any address, once for a name.
  void watch(const std::string& lock, const void* watcher, Wake changed);
  void unwatch(const std::string& lock, const void* watcher) noexcept;

  LockStatus inspect(const std::string& lock, TimePoint now) const;
  std::vector<std::string> held_names() const;
  /// Takes the lock from the holder with that token, or with `mark` marks its entry (the first mark
  /// counts) and wakes it. Empty: done; else the (first) holder's token, 0 if no client holds it.
  std::optional<std::uint64_t> evict(const std::string& lock, std::uint64_t token,
                                     const Break* mark = nullptr);
  /// The mark of that holder's entry. Empty: it has none, or does not hold the lock.
  std::optional<Break> mark_of(const std::string& lock, const std::string& owner_id) const;
  /// Removes the lock from the first holder.
  void evict(const std::string& lock);
  /// Returns the (first) holder's token; empty if no client holds it.
  std::optional<std::uint64_t> holder_token(const std::string& lock) const;

  // Migration: see <dlock/spi/migration_store.hpp>. An empty text stands for no record, or no note.
  std::string record(const std::string& lock) const;
  /// `gate` may be null, here and below.
  Exchange seal(const std::string& lock, const std::string& owner_id, std::string record,
                const GateCheck* gate = nullptr);
  Exchange set_record(const std::string& lock, const std::string& from, std::string to,
                      std::uint64_t min_token, const GateCheck* gate = nullptr);
  /// False: not held by this owner.
  bool raise(const std::string& lock, const std::string& owner_id, std::uint64_t min_token);
  std::string note(const std::string& key) const;
  Exchange set_note(const std::string& key, const std::string& from, std::string to);
  /// Returns the locks without a record that are held or waited for.
  std::vector<std::string> claimed_names() const;
  std::uint64_t highest_token() const;

  Semaphores& semaphores() noexcept { return semaphores_; }

 private:
  struct Entry {
    Owner owner;
    Mode mode = Mode::exclusive;
    std::uint64_t token = 0;  ///< 0 while waiting
    TimePoint since{};
    Wake wake;
    Wake contended{};
    Told asked{};
    std::string proof{};  ///< proof of an exported grant
    TimePoint offered_until{};
    TimePoint arrival{};  ///< less its head start
    std::optional<Break> broken{};
  };
  struct Queue {
    std::deque<Entry> entries;
    std::uint64_t last_token = 0;
    std::string record;  ///< in the place of the lock; empty: the lock is a lock
  };
  /// Under the mutex.
  Grant claim_locked(const ClaimRequest& request, TimePoint now, Wake wake);
  /// Needs the mutex. Empty: the gate is as expected.
  std::optional<std::string> another_gate(const GateCheck* expected) const;
  using Entries = std::deque<Entry>;
  /// Returns the number of entries at the front that may hold the lock together: the first one, and
  /// those of mode shared with it.
  static std::size_t holders(const Entries& entries);
  static bool may_hold(const Entries& entries, Entries::const_iterator entry);
  static Adopted adopt_locked(Queue& queue, const ClaimRequest& request, TimePoint now, Wake& wake);
  struct Watched {
    std::string holder;  ///< the holder's id; empty: the lock is free
    std::map<const void*, Wake> watchers;
  };
  /// Called without the mutex, after a possible change of the holder.
  void tell_watchers(const std::string& lock);
  std::string holder_id(const std::string& lock) const;
  static Grant seal_at_once(Queue& queue, std::uint64_t min_token, std::string record);
  void remove(Queue& queue, Entries::iterator entry, std::vector<Wake>& wakes);
  static void wake_holders(const Entries& entries, std::vector<Wake>& wakes);

  mutable std::mutex mutex_;
  std::map<std::string, Queue> queues_;
  std::map<std::string, std::string> notes_;
  std::map<std::string, Watched> watched_;
  Semaphores semaphores_;
};

}  // namespace dlock::memory

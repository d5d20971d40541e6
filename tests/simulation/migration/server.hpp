// SPDX-License-Identifier: Apache-2.0
//
// A simulated lock server with leases per claim, records and notes: as much of a store as a
// migration needs, and nothing of any real one. Its state alone, without messages.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dlock/spi/migration_store.hpp"

namespace dlock::simulation::migration {

/// Ways of stores to do the same.
struct Ways {
  /// A claim that may not hold is answered with the record that it has become; else it is granted,
  /// to be sealed.
  bool seals_at_once = false;
  /// Who waits has a place, first come, first served: it was let in by the gate as it was then.
  bool queues = false;
};

class Server {
 public:
  /// `lossy`: forget() and wipe() may be called. Tokens go on from `first_token`. `seals`: it can
  /// have records.
  Server(bool lossy, std::uint64_t first_token, bool seals = true, Ways ways = {})
      : lossy_(lossy), seals_(seals), ways_(ways), first_token_(first_token) {}

  struct Grant {
    ClaimStatus status = ClaimStatus::busy;
    std::uint64_t token = 0;
    std::string record;  ///< of `sealed`; of `gate_changed` the gate
  };
  Grant claim(const ClaimRequest& request, TimePoint now);
  /// False: no longer theirs.
  bool extend(const ClaimRequest& request, TimePoint now);
  bool release(const ClaimRequest& request, TimePoint now);
  LockStatus inspect(const std::string& name, TimePoint now) const;
  /// Those that are held.
  std::vector<LockStatus> list(const std::string& prefix, TimePoint now) const;

  struct Exchange {
    bool done = false;
    std::optional<std::string> found;
    std::optional<std::string> gate{};  ///< it is this, in place of what was expected
  };
  std::optional<std::string> record(const std::string& name) const;
  /// What a replica says that hears of everything `kReplicaLag` later.
  std::optional<std::string> lagging_record(const std::string& name, TimePoint now) const;
  Exchange seal(const ClaimRequest& request, std::uint64_t token, const std::string& record,
                TimePoint now);
  Exchange set_record(const std::string& name, const std::string& from,
                      const std::optional<std::string>& to, std::uint64_t min_token, TimePoint now,
                      const GateCheck* gate = nullptr);
  /// Held or waited for, and without a record.
  std::vector<std::string> claimed_names(const std::string& prefix, TimePoint now) const;
  std::uint64_t highest_token() const;
  bool raise(const ClaimRequest& request, std::uint64_t min_token, TimePoint now);
  std::optional<std::string> note(const std::string& key) const;
  Exchange set_note(const std::string& key, const std::optional<std::string>& from,
                    const std::optional<std::string>& to);

  bool is_lossy() const noexcept { return lossy_; }
  bool seals() const noexcept { return seals_; }
  /// Who holds it is forgotten; tokens are not. The owner whose lock it was.
  std::string forget(const std::string& name);
  /// Everything is forgotten, tokens and notes too; tokens begin anew at 1. The holders, by lock.
  std::map<std::string, Owner> wipe(TimePoint now);
  /// Nothing gets through to it or back.
  bool is_away() const noexcept { return away_; }
  void go_away(bool away) noexcept { away_ = away; }
  /// How many claims have become records at once.
  std::uint64_t sealed_at_once() const noexcept { return sealed_at_once_; }
  /// What must never happen to a source: its record is lost.
  void lose_record(const std::string& name, TimePoint now) { write(lock(name), {}, now); }

 private:
  static constexpr Duration kReplicaLag = std::chrono::seconds(2);

  struct Place {
    std::string id;
    Owner owner;
    TimePoint expires{};
  };
  struct Lock {
    Owner owner;  ///< without an id: free
    std::deque<Place> waiting;
    std::uint64_t token = 0;
    std::uint64_t last_token = 0;
    TimePoint expires{};
    std::string record;
    std::vector<std::pair<TimePoint, std::string>>
        records;  ///< all that stood there, and since when
  };
  static void write(Lock& lock, const std::string& record, TimePoint now);
  Lock& lock(const std::string& name);
  static bool holds(const Lock& lock, const std::string& owner, TimePoint now) {
    return !owner.empty() && lock.owner.id == owner && now < lock.expires;
  }

  std::optional<std::string> another_gate(const GateCheck* expected) const;
  /// Who is let in, and has not been granted it.
  Grant wait(Lock& lock, const ClaimRequest& request, TimePoint now) const;
  Grant seal_at_once(Lock& lock, const ClaimRequest& request, TimePoint now);
  static void leave(Lock& lock, const std::string& owner);

  const bool lossy_;
  const bool seals_;
  const Ways ways_;
  std::uint64_t sealed_at_once_ = 0;
  std::uint64_t first_token_;
  bool away_ = false;
  std::map<std::string, Lock> locks_;
  std::map<std::string, std::string> notes_;
};

}  // namespace dlock::simulation::migration

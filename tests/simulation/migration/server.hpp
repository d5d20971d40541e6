// SPDX-License-Identifier: Apache-2.0
//
// A simulated lock server with leases per claim, records and notes: as much of a store as a
// migration needs, and nothing of any real one. Its state alone, without messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dlock/backend.hpp"

namespace dlock::simulation::migration {

class Server {
 public:
  /// `lossy`: forget() and wipe() may be called. Tokens go on from `first_token`. `seals`: it can
  /// have records.
  Server(bool lossy, std::uint64_t first_token, bool seals = true)
      : lossy_(lossy), seals_(seals), first_token_(first_token) {}

  struct Grant {
    ClaimStatus status = ClaimStatus::busy;
    std::uint64_t token = 0;
    std::string record;
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
  };
  std::optional<std::string> record(const std::string& name) const;
  /// What a replica says that hears of everything `kReplicaLag` later.
  std::optional<std::string> lagging_record(const std::string& name, TimePoint now) const;
  Exchange seal(const ClaimRequest& request, std::uint64_t token, const std::string& record,
                TimePoint now);
  Exchange set_record(const std::string& name, const std::string& from,
                      const std::optional<std::string>& to, std::uint64_t min_token, TimePoint now);
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
  /// What must never happen to a source: its record is lost.
  void lose_record(const std::string& name, TimePoint now) { write(lock(name), {}, now); }

 private:
  static constexpr Duration kReplicaLag = std::chrono::seconds(2);

  struct Lock {
    Owner owner;  ///< without an id: free
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

  const bool lossy_;
  const bool seals_;
  std::uint64_t first_token_;
  bool away_ = false;
  std::map<std::string, Lock> locks_;
  std::map<std::string, std::string> notes_;
};

}  // namespace dlock::simulation::migration

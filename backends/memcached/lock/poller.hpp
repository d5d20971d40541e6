// SPDX-License-Identifier: Apache-2.0
//
// Who waits for which key of one server, when to look next, and whom to wake. Pure: the server
// carries out the polls.
//
// All waited keys go into one multi-get. Of a free key's waiters here the first is woken and tries;
// the others need not lose against him. The pause between polls starts short with each newcomer,
// grows while nothing happens, and is jittered: processes that wait for one lock must not march in
// step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/memcached/lock/claim.hpp"
#include "backends/memcached/lock/release.hpp"

namespace dlock::memcached {

class Poller {
 public:
  struct Pace {
    Duration shortest{};
    Duration longest{};
  };
  explicit Poller(Pace pace) : pace_(pace), pause_(pace.shortest) {}

  void add(KeyClaim& claim);
  void remove(KeyClaim& claim);
  /// The first waiter of the key that is not on its way already; null if there is none.
  KeyClaim* next(const std::string& key);
  /// Calls `wake` with each waiter that is not on its way already; `wake` adds and removes none.
  template <class Wake>
  void each_sleeper(Wake wake) const {
    for (const auto& [key, claims] : waiters_) {
      for (const auto& [arrival, claim] : claims) {
        if (!claim->woken) wake(claim);
      }
    }
  }
  std::vector<std::string> keys() const;

  /// A released claim of which an add may arrive until then.
  void add_stray(ReleaseOrder stray, TimePoint until);
  std::vector<ReleaseOrder> strays(TimePoint now);

  bool has_waiters() const noexcept { return !waiters_.empty(); }
  bool idle() const noexcept { return waiters_.empty() && strays_.empty(); }
  /// How long to pause before the next poll; `dice`: uniform.
  Duration pause(std::uint64_t dice);

 private:
  struct Stray {
    ReleaseOrder order;
    TimePoint until;
  };

  const Pace pace_;
  Duration pause_;
  std::uint64_t last_arrival_ = 0;
  std::map<std::string, std::map<std::uint64_t, KeyClaim*>> waiters_;
  std::vector<Stray> strays_;
};

}  // namespace dlock::memcached

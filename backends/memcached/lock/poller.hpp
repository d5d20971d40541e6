// SPDX-License-Identifier: Apache-2.0
//
// Decides for one server which claims wait for which key, when to poll next, and which claim to
// wake. Pure: the server executes the polls.
//
// One multi-get reads all keys with waiters. If a key is free, the first of its waiters here is
// woken and tries; the others do not compete with it. The pause between polls is short after each
// new waiter, and grows while nothing happens. It is jittered, so that processes that wait for one
// lock do not poll in step.
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
  /// Returns the first waiter of the key that was not woken yet; null if there is none.
  KeyClaim* next(const std::string& key);
  /// Calls `wake` with each waiter that was not woken yet; `wake` must not add or remove one.
  template <class Wake>
  void each_sleeper(Wake wake) const {
    for (const auto& [key, claims] : waiters_) {
      for (const auto& [arrival, claim] : claims) {
        if (!claim->woken) wake(claim);
      }
    }
  }
  std::vector<std::string> keys() const;

  /// A released claim whose add may arrive until then.
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

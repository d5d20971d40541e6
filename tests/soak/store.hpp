// SPDX-License-Identifier: Apache-2.0
//
// A store under soak: its servers, the way of each worker to them, and what can be broken.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace dlock::soak {

using Dice = std::mt19937;

/// Something that can be broken and mended.
struct StoreFault {
  std::string kind;
  std::function<void(Dice&)> strike;
  std::function<void()> heal;
  /// How long it stays, in leases.
  double shortest = 0.1;
  double longest = 0.8;
};

class SoakStore {
 public:
  virtual ~SoakStore() = default;

  /// The URL of one worker's own way.
  virtual std::string url(std::size_t slot) const = 0;
  /// Without anything in between.
  virtual std::string direct_url() const = 0;
  virtual std::vector<StoreFault> faults() { return {}; }

  /// Lease or session; of a store without: what holds are measured by.
  virtual std::chrono::milliseconds lease() const = 0;
  /// After a heal, each worker has been granted something within this.
  virtual std::chrono::milliseconds progress_bound() const = 0;
  /// When all have gone, nothing is left after this: a late copy of a request lasts for a lease,
  /// and whatever stands for a waiter that was killed has its own patience.
  virtual std::chrono::milliseconds leftover_bound() const {
    return 2 * lease() + std::chrono::seconds(2);
  }
  /// What its servers say of themselves, when somebody does not get on.
  virtual std::string what_servers_say() { return {}; }
  /// Where two may hold a lock after one of these, as the store declares (docs/guarantees.md).
  virtual std::vector<std::string> excepted() const { return {}; }
};

/// `backend`: zookeeper, redis, memcached or local. Its servers run when this returns.
std::unique_ptr<SoakStore> make_store(const std::string& backend, std::size_t workers);

}  // namespace dlock::soak

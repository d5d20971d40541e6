// SPDX-License-Identifier: Apache-2.0
//
// ClaimPolicy: the rules of a layer above a store for each claim, beside the store's own: whether
// it may be made, its content, and whether its grant counts. An Acquisition uses its store's
// policy, or has a separate one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

class Store;

/// Loop only. Its store outlives it.
class ClaimPolicy {
 public:
  struct Admission {
    Failure failure;              ///< clear: `name` may be claimed
    bool is_provisional = false;  ///< by information that may be out of date: confirm() it
  };
  struct Confirmation {
    Failure failure;        ///< `unavailable`: it is not known; any other refuses the grant
    bool is_stale = false;  ///< admitted, but by what is known now a claim says something else
  };

  virtual ~ClaimPolicy() = default;
  /// The information is fresh, and admits `name`: admit() would add nothing. Sends nothing.
  virtual bool is_admitted(std::string_view /*name*/) const { return false; }
  /// The store is ready. Before each request for a claim that is not admitted already.
  virtual asio::awaitable<Admission> admit(std::string name) = 0;
  /// Confirms a grant that was admitted provisionally. `token`: the grant's, if any.
  virtual asio::awaitable<Confirmation> confirm(std::string name,
                                                std::optional<std::uint64_t> token) = 0;
  /// Writes the policy's part of a claim's request.
  virtual void prepare(ClaimRequest& request) const = 0;
  /// The store answered with a record in the lock's place. Returns true if it was removed: claim
  /// again.
  virtual asio::awaitable<bool> open(std::string name, std::string record) = 0;
  /// Returns the failure to report for a record that stays.
  virtual Failure sealed(std::string_view record, std::string_view name) const = 0;
};

/// A store's policy: for every claim without one.
class StorePolicy : public ClaimPolicy {
 public:
  /// Called when the store has been reached. Reads what the policy must know of the store, so that
  /// no lock waits for that. The first lock repeats a read that failed.
  virtual asio::awaitable<void> on_connected() = 0;
};

/// Makes the policy of the layer that is linked with the core (migration/layer.cpp).
std::unique_ptr<StorePolicy> make_store_policy(Store& store);

}  // namespace dlock::core

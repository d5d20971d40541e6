// SPDX-License-Identifier: Apache-2.0
//
// ClaimPolicy: what a layer above a store asks of each claim beside the store's own word: whether
// it may be made, what it says, whether its grant is believed. An Acquisition has its store's, or
// one of its own.
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
    bool is_provisional = false;  ///< by what was known some time ago: confirm() the grant
  };
  struct Confirmation {
    Failure failure;        ///< `unavailable`: it is not known; any other refuses the grant
    bool is_stale = false;  ///< admitted, but by what is known now a claim says something else
  };

  virtual ~ClaimPolicy() = default;
  /// What is known is fresh, and `name` may be claimed by it: admit() would say no more. No I/O.
  virtual bool is_admitted(std::string_view /*name*/) const { return false; }
  /// The store is ready. Before each request for a claim that is not admitted already.
  virtual asio::awaitable<Admission> admit(std::string name) = 0;
  /// Of a grant that was admitted provisionally. `token`: what it has, if any.
  virtual asio::awaitable<Confirmation> confirm(std::string name,
                                                std::optional<std::uint64_t> token) = 0;
  /// What the claim says beside its request.
  virtual void prepare(ClaimRequest& request) const = 0;
  /// The claim was answered with a record in the lock's place. True: that has been taken away;
  /// claim anew.
  virtual asio::awaitable<bool> open(std::string name, std::string record) = 0;
  /// What to tell of a record that stays.
  virtual Failure sealed(std::string_view record, std::string_view name) const = 0;
};

/// A store's own: for every claim that brings none.
class StorePolicy : public ClaimPolicy {
 public:
  /// The store has been reached: what it needs to know of it, so that no lock waits for that. What
  /// fails here is asked again by the first lock.
  virtual asio::awaitable<void> on_connected() = 0;
};

/// Of the layer that is linked with the core (migration/layer.cpp).
std::unique_ptr<StorePolicy> make_store_policy(Store& store);

}  // namespace dlock::core

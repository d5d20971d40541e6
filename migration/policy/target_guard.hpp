// SPDX-License-Identifier: Apache-2.0
//
// TargetGuard: every store's policy for claims that no plan makes. Who knows a store alone is kept
// out of what an unfinished plan moves to it, stays above the floors of finished ones, and passes
// what those have left in a lock's place. Costs a plain acquire no request: the plans are read when
// the store is reached, and beside a claim when that was more than kIncomingPlansAge ago.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/store/claim_policy.hpp"
#include "dlock/spi/signal.hpp"
#include "migration/policy/incoming_plans.hpp"

namespace dlock::core::migration {

/// Loop only.
class TargetGuard final : public StorePolicy {
 public:
  /// Of that store, whose policy it is.
  static TargetGuard& of(Store& store);

  explicit TargetGuard(Store& store);

  asio::awaitable<void> on_connected() override;
  bool is_admitted(std::string_view name) const override;
  asio::awaitable<Admission> admit(std::string name) override;
  asio::awaitable<Confirmation> confirm(std::string name,
                                        std::optional<std::uint64_t> token) override;
  void prepare(ClaimRequest& request) const override;
  asio::awaitable<bool> open(std::string name, std::string record) override;
  Failure sealed(std::string_view record, std::string_view name) const override;

  // For plans, whose claims ask otherwise. All after Store::ready() or connected().

  /// Whether this is the store that a plan was started with.
  asio::awaitable<Failure> check_plan(std::string plan, std::string id);
  /// If the record in the place of `name` was left there by what came before a finished plan which
  /// has brought the lock here, by what was read last: takes it away. True: ask again.
  asio::awaitable<bool> open_left(std::string name, std::string record);
  /// As open_left(), and reads the plans again before it returns false.
  asio::awaitable<bool> open_by_plans(std::string name, std::string record);
  /// Whether it is such a record, so that the lock is as good as open here.
  asio::awaitable<Result<bool>> is_left_closed(std::string name, std::string record);
  /// The highest floor of the finished plans that have come here, by what was read last.
  std::uint64_t highest_floor() const { return plans_.highest_floor(); }

 private:
  asio::awaitable<Failure> read();
  void read_meanwhile();
  asio::awaitable<void> finish_reading();
  /// Reads whether the record's plan is finished, for sealed().
  asio::awaitable<void> read_gate(std::string record);

  Store& store_;
  IncomingPlans plans_;
  std::set<std::string, std::less<>> finished_;  ///< ids of plans that left this store
  bool is_reading_ = false;
  std::vector<std::shared_ptr<Signal>> waiters_;  ///< for the reading that is under way
};

}  // namespace dlock::core::migration

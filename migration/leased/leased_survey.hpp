// SPDX-License-Identifier: Apache-2.0
//
// The state of a plan with a leased gate, for `dlock migrate status`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/leased/leased_ledger.hpp"
#include "migration/leased/leased_report.hpp"

namespace dlock::core::migration {

struct StrangersFound {
  Failure failure;  ///< the store could not be asked
  std::vector<Stranger> strangers;
  /// The store cannot list its locks: only locks with an exact name in the plan were seen.
  bool unlisted = false;
};
/// Loop only. Clients that hold a lock of the plan in that store, or wait for it, without the
/// plan's route.
asio::awaitable<StrangersFound> strangers_in(std::shared_ptr<Store> store, Plan plan);

struct LeasedStatus {
  Plan plan;
  std::optional<LeasedGate> gate;   ///< empty: lost, or it could not be read (see alarms)
  std::vector<Stranger> strangers;  ///< in both stores
  std::vector<std::string> remarks;
  std::vector<std::string> alarms;
  std::string next;  ///< the next step, and when it is possible
};
/// Loop only. A store that cannot be asked is an alarm.
asio::awaitable<LeasedStatus> leased_survey(LeasedStores stores, Plan plan);

}  // namespace dlock::core::migration

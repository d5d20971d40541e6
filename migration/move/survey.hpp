// SPDX-License-Identifier: Apache-2.0
//
// Survey: the status of a plan for an operator. It has each lock's record and holder, programs that
// do not take part, alarms, and the next step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/store.hpp"
#include "migration/gate.hpp"
#include "migration/move/target_place.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

struct NameStatus {
  std::string name;
  bool known = false;            ///< the source answered
  std::optional<Record> record;  ///< empty: OPEN
  std::string unreadable;        ///< why the text in the lock's place is not a record
  std::optional<LockStatus> in_source;
  std::optional<LockStatus> in_target;
  TargetPlace place;  ///< in the target, where that answers and can have records
  std::vector<std::string> alarms;
};

struct PlanStatus {
  Plan plan;
  bool finished = false;
  std::optional<Gate> gate;  ///< empty: the start was broken off
  std::vector<NameStatus> names;
  std::vector<std::string> alarms;  ///< alarms about a store as a whole
  std::string next;                 ///< the next command, and why it may wait
};

/// Loop only. Returns the status of the plan, with the names that the two stores show now. A store
/// that cannot be asked is an alarm.
asio::awaitable<PlanStatus> survey(std::shared_ptr<Store> from, std::shared_ptr<Store> to,
                                   Plan plan);

/// Loop only. Returns a sentence for each name that cannot move from `source` to that store,
/// because a record there leads elsewhere. A failure if the store cannot be asked.
asio::awaitable<Result<std::vector<std::string>>> taken_places(std::shared_ptr<Store> target,
                                                               std::string source,
                                                               std::vector<std::string> names);

// Pure.
/// `at_home`: the gate is FINAL, and clients ask the target alone.
std::vector<std::string> alarms_of(const NameStatus& name, const Plan& plan, bool at_home = false);
std::string next_step(const PlanStatus& status);
/// OPEN without a record.
std::string state_text(const std::optional<Record>& record);

}  // namespace dlock::core::migration

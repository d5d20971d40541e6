// SPDX-License-Identifier: Apache-2.0
//
// What came of one name of a plan.
#pragma once

#include <optional>
#include <string>

#include "dlock/lock_status.hpp"
#include "dlock/spi/answers.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

enum class Verdict {
  done,
  waiting,  ///< for a holder, or for a lease to end; run it again
  refused,
  unreachable,
  stopped,
};

struct StepReport {
  std::string name;
  Verdict verdict = Verdict::unreachable;
  std::optional<Record> record;  ///< as it was left; empty: OPEN, or not known
  bool changed = false;          ///< a record was written
  std::string text;              ///< why not done: a sentence for the operator
  std::string holder;            ///< who is waited for, where that is known
};

StepReport report_of(std::string name, Verdict verdict, std::string text);
/// Of a request that `store` has refused, or that has not reached it.
StepReport failure_report(std::string name, bool refused, const std::string& store, error_code ec,
                          const Failure& failure);

/// `worker (pid 4711 on host)`
std::string describe(const Owner& owner);

}  // namespace dlock::core::migration

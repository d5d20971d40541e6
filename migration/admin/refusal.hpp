// SPDX-License-Identifier: Apache-2.0
//
// How an operator's call ends that did nothing: an exception, with a sentence for the operator.
#pragma once

#include <string>

namespace dlock::core::migration {

/// It will not pass by trying again, for this reason.
struct Refusal {
  std::string why;
};

/// What was asked for does not belong to the plan, or to its mode.
struct Misuse {
  std::string why;
};

/// It was ended by Admin::stop(). What was done is done.
struct Stopped {};

}  // namespace dlock::core::migration

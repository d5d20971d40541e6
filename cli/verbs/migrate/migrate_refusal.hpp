// SPDX-License-Identifier: Apache-2.0
//
// How a `migrate` verb ends that did nothing: an exception with a sentence for the operator.
#pragma once

#include <string>

#include "dlock/spi/answers.hpp"

namespace dlock::cli {

/// Refused, with the reason: status 4.
struct Refusal {
  std::string why;
};

/// Options that do not belong to the plan's mode: status 64.
struct Misuse {
  std::string why;
};

/// Throws Refusal for what will not pass by trying again, else LockError.
[[noreturn]] void fail(const Failure& failure);

}  // namespace dlock::cli

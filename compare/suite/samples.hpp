// SPDX-License-Identifier: Apache-2.0
//
// How often each thing is measured. A quick run has fewer scenarios, not fewer samples.
#pragma once

#include "compare/suite/options.hpp"

namespace dlock::compare {

struct Samples {
  int repeats;  ///< of a scenario of speed, minutes apart
  int slices;   ///< of one repeat, in which the drivers take turns: each is a sample of a ratio
  int tries;    ///< of a scenario of safety
};

constexpr Samples samples_of(Depth depth) {
  if (depth == Depth::full) return {5, 10, 5};
  if (depth == Depth::standard) return {3, 10, 3};
  return {2, 15, 3};
}

}  // namespace dlock::compare

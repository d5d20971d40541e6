// SPDX-License-Identifier: Apache-2.0
//
// The words by which runs are asked for: stores and modes.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/run.hpp"

namespace dlock::simulation {

/// The word by which it is asked for.
std::string mode_name(const Way& way);
/// `redis (exclusive)`, `redis with zookeeper (several)`.
std::string title(const Kind& kind, const Way& way);
/// The options that choose it.
std::string options_of(const Kind& kind, const Way& way);

struct Choice {
  const Kind* kind;
  Way way;
};
/// All that can be, of those that are asked for: a name, or `all`. `with`: a second store for the
/// mode `several`; empty: of one store alone.
std::vector<Choice> choices(const std::string& store, const std::string& mode,
                            const std::string& with);
/// Each store with the next one: what a mistake over two stores may show in.
std::vector<Choice> pairs();

}  // namespace dlock::simulation

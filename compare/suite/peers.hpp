// SPDX-License-Identifier: Apache-2.0
//
// Which clients are measured on a store: ours, the floor, and those of others that were asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/servers/store.hpp"
#include "compare/suite/context.hpp"

namespace dlock::compare {

struct DriverProgram {
  std::string name;
  std::vector<std::string> command{};  ///< empty: this program
};

/// The first two are `dlock` and `floor`, but of `readers` and `permits`, which have no floor;
/// peers only where they know the store and the measure.
std::vector<DriverProgram> drivers_for(Context& context, const Store& store,
                                       std::string_view measure);

/// The names of those of others that take part in the safety scenarios on this store.
std::vector<std::string> guards_on(const Options& options, const StoreKind& kind);
DriverProgram guard_program(Context& context, const std::string& name);

/// Peers by name. Throws NothingToMeasure for one that there is not, and
/// testkit::MissingPackage for one that is not installed.
void check_peers(const std::vector<std::string>& names);

}  // namespace dlock::compare

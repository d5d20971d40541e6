// SPDX-License-Identifier: Apache-2.0
//
// Which clients are measured on a store: ours, the floor, and those of others that were asked for.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compare/servers/store.hpp"
#include "compare/suite/context.hpp"

namespace dlock::compare {

struct DriverProgram {
  std::string name;
  std::vector<std::string> command{};  ///< empty: this program
  std::string options{};               ///< ours, with these behind the address

  bool is_ours() const { return name == kOurs || !options.empty(); }
  /// Beside dlock as it comes and the floor; where `peers_at` says only.
  bool is_further() const { return !command.empty() || !options.empty(); }
  static constexpr std::string_view kOurs = "dlock";
};

/// The first two are `dlock` and `floor`, but of `readers` and `permits`, which have no floor;
/// peers only where they know the store and the measure. `ours_too` of a scenario: dlock configured
/// in another way, `{"driver": name, "options": of the address}`.
std::vector<DriverProgram> drivers_for(Context& context, const Store& store,
                                       const boost::json::object& scenario);

/// The names of those of others that take part in the safety scenarios on this store.
std::vector<std::string> guards_on(const Options& options, const StoreKind& kind);
DriverProgram guard_program(Context& context, const std::string& name);

/// Peers by name. Throws NothingToMeasure for one that there is not, and
/// testkit::MissingPackage for one that is not installed.
void check_peers(const std::vector<std::string>& names);

}  // namespace dlock::compare

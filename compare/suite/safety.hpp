// SPDX-License-Identifier: Apache-2.0
//
// The safety scenarios and the pitfalls: each on each store that it is for, with servers of its
// own.
#pragma once

#include <string>
#include <vector>

#include "compare/suite/context.hpp"

namespace dlock::compare {

/// How long it is going to take, in seconds; 0: there is nothing to do.
double plan_safety(const Options& options, const std::vector<std::string>& stores,
                   const std::vector<std::string>& urls);

/// Several at once: they mostly wait. `urls` are stores of the user's own, on which only clients
/// are hurt.
void run_safety(Context& context, const std::vector<std::string>& stores,
                const std::vector<std::string>& urls);

/// The herd at ZooKeeper: notifications for one release, by number of waiters.
boost::json::object measure_herd(Context& context, const boost::json::object& scenario);

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
//
// The speed scenarios: each on each store, ours and the floor in turn, so that what changes on the
// machine meanwhile changes both.
#pragma once

#include <boost/json/object.hpp>

#include "compare/servers/store.hpp"
#include "compare/suite/context.hpp"

namespace dlock::compare {

/// How long it is going to take, in seconds; for the progress.
double plan_speed(const Options& options, std::size_t stores);

/// On one store that is running and declares that. Results go to the context. What fails there is a
/// result, too; what the store does not have is left out.
void run_speed(Context& context, Store& store, const boost::json::object& declared);

}  // namespace dlock::compare

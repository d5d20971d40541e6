// SPDX-License-Identifier: Apache-2.0
//
// The speed scenarios: each on each store, ours and the floor in turn, so that what changes on the
// machine meanwhile changes both.
#pragma once

#include "compare/servers/store.hpp"
#include "compare/suite/context.hpp"

namespace dlock::compare {

/// How long it is going to take, in seconds; for the progress.
double plan_speed(const Options& options, std::size_t stores);

/// On one store that is running. Results go to the context. What fails there is a result, too.
void run_speed(Context& context, Store& store);

}  // namespace dlock::compare

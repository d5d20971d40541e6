// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "options.hpp"

namespace ticket_office {

/// Sells one ticket after the other until none is left or `stop` is requested.
/// Throws dlock::LockError when the store fails.
void sell(const Options& options, std::stop_token stop);

}  // namespace ticket_office

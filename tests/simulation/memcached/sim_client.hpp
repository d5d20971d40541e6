// SPDX-License-Identifier: Apache-2.0
//
// The backend's Client over a simulated connection to a SimServer, which fails as a real one does.
#pragma once

#include <memory>

#include "backends/memcached/wire/client.hpp"
#include "tests/simulation/memcached/sim_server.hpp"
#include "tests/simulation/network.hpp"

namespace dlock::simulation::memcached {

/// `process`, `network` and `server` outlive what it makes.
dlock::memcached::MakeClient make_driver(Process& process, Network& network, SimServer& server);

}  // namespace dlock::simulation::memcached

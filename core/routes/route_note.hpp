// SPDX-License-Identifier: Apache-2.0
//
// The note of routes (route_uses.hpp) in its store: written and read. Loop only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "core/routes/route_uses.hpp"
#include "core/store/store.hpp"

namespace dlock::core {

/// Whether the store keeps notes that nothing but their writers removes.
bool keeps_route_note(Store& store);

/// Adds the entry unless an equal one is recent. `use.who` and its times are set here. A failure
/// has no effect.
asio::awaitable<void> add_route_use(std::shared_ptr<Store> store, RouteUse use);

/// The note; an empty one if there is none.
asio::awaitable<Result<std::string>> read_route_note(std::shared_ptr<Store> store);

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// One acquire in one store, awaited.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/store/store.hpp"

namespace dlock::core::migration {

struct LockedFor {
  LockHandle handle;  ///< empty on an error
  error_code error;
  Failure failure;     ///< what is to be said about it
  std::string record;  ///< of errc::moving
  /// Of errc::moving: it was refused for the plan's gate, which says this.
  std::optional<std::string> gate;
};

/// Loop only. `started`: told of what is under way, for who may have to cancel it.
asio::awaitable<LockedFor> await_lock(
    std::shared_ptr<Store> store, Acquisition::Request request,
    std::function<void(const std::shared_ptr<Acquisition>&)> started = {});

/// The store is asked once, and nobody is waited for.
Acquisition::Request one_try(Store& store, std::string name);

}  // namespace dlock::core::migration

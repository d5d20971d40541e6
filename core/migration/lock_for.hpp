// SPDX-License-Identifier: Apache-2.0
//
// One acquire in one store, awaited.
#pragma once

#include <memory>

#include "core/store.hpp"

namespace dlock::core::migration {

struct LockedFor {
  LockHandle handle;  ///< empty on an error
  error_code error;
  Failure failure;  ///< what is to be said about it
};

/// Loop only.
asio::awaitable<LockedFor> lock_for(std::shared_ptr<Store> store, Acquisition::Request request);

/// The store is asked once, and nobody is waited for.
Acquisition::Request one_try(Store& store, std::string name);

}  // namespace dlock::core::migration

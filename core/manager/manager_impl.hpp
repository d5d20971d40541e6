// SPDX-License-Identifier: Apache-2.0
//
// What is behind a LockManager, for the files that have its members; and what they share.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/manager/engine.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::inline v0 {

struct LockManager::Impl {
  const std::shared_ptr<core::Engine> engine;
};

}  // namespace dlock::inline v0

namespace dlock::core {

[[noreturn]] inline void fail(const Failure& failure, std::string lock, std::string store) {
  // An answer that was neither a value nor a failure is none that we understand.
  const auto error = failure.error ? failure.error : make_error_code(errc::protocol);
  throw LockError(error, {std::move(lock), std::move(store), failure.text});
}

/// As long as reaching the store may take, and one request more.
inline TimePoint operation_deadline(Store& store) {
  return store.env().now() + store.setup().settings.connect_timeout + store.request_timeout();
}

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// The implementation of LockManager, for the files that define its members; and their shared code.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/routes.hpp"
#include "core/manager/engine.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::inline v0 {

struct LockManager::Impl {
  const std::shared_ptr<core::Engine> engine;
};

}  // namespace dlock::inline v0

namespace dlock::core {

inline LockError error_of(const Failure& failure, std::string lock, std::string store) {
  // An answer that was neither a value nor a failure is none that we understand.
  const auto error = failure.error ? failure.error : make_error_code(errc::protocol);
  return {error, {std::move(lock), std::move(store), failure.text}};
}

[[noreturn]] inline void fail(const Failure& failure, std::string lock, std::string store) {
  throw error_of(failure, std::move(lock), std::move(store));
}

/// Time to reach the store, and for one request more.
inline TimePoint operation_deadline(Store& store) {
  return store.env().now() + store.setup().settings.connect_timeout + store.request_timeout();
}

/// The answers of the stores, for list() and list_semaphores().
template <class Status>
struct Listed {
  std::vector<Status> all;
  std::vector<LockError> incomplete;  ///< a store left something out
  std::vector<LockError> failed;      ///< a store has no list
  bool has_list = false;

  void add(Result<std::vector<Status>> result, const std::string& store,
           const WantedNames& wanted) {
    if (!result.value) {
      failed.push_back(error_of(result.failure, {}, store));
      return;
    }
    has_list = true;
    if (result.failure.error) incomplete.push_back(error_of(result.failure, {}, store));
    std::erase_if(*result.value, [&](const Status& one) { return !wanted.has(one.name); });
    std::move(result.value->begin(), result.value->end(), std::back_inserter(all));
  }

  /// Throws the first failure of a store that can list.
  void throw_failure() const {
    for (const auto& error : failed) {
      if (error.code() != errc::not_supported) throw LockError(error);
    }
  }

  /// Adds what is missing from the list to `unread`.
  void tell_unread(std::vector<LockError>& unread) const {
    unread.insert(unread.end(), failed.begin(), failed.end());
    unread.insert(unread.end(), incomplete.begin(), incomplete.end());
  }
};

}  // namespace dlock::core

namespace dlock::core {

/// One request of an eviction to the store: marks the record, or answers how a marked one is.
using EvictOnce = asio::awaitable<EvictAnswer>(std::shared_ptr<Store> store, EvictRequest request);

/// Breaks a lock or permits, as LockManager::evict(). Blocks the calling thread, not the loop.
/// Throws LockError.
Evicted evict(Engine& engine, const std::string& store, EvictRequest request,
              const EvictOptions& options, EvictOnce* once, const std::stop_token& stop);

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// A real server on which our clients and others meet.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "testkit/await.hpp"

namespace dlock::interop {

using testkit::Clock;

/// When the store lets go of what a dead client holds: between these two.
struct Expiry {
  Clock::time_point earliest;
  Clock::time_point latest;
};

/// What is known of a client that is dead.
struct Death {
  std::string key;  ///< of the lock that it held
  std::chrono::milliseconds
      lease;                ///< that it asked for; a session's time-out, where there are sessions
  Clock::time_point alive;  ///< the server has heard of it after this
  Clock::time_point dead;   ///< and not after this
};

/// Not thread-safe. The server runs until the destructor.
class SharedStore {
 public:
  virtual ~SharedStore() = default;
  /// HOST:PORT.
  virtual std::string endpoint() const = 0;
  /// Ours. `key`: what a lock is called there, with `{name}` in it.
  virtual std::string url(std::string_view key, std::chrono::milliseconds lease) const = 0;
  /// By the store's own word, now: what is left of the key, or its rule for sessions.
  virtual Expiry expiry(const Death& death) = 0;
  /// A lock's holder keeps it for as long as its session, and no key has a time of its own.
  virtual bool has_sessions() const { return false; }
  /// Foreign waiters stand in a queue that everybody can see.
  virtual bool shows_foreign_waiters() const { return false; }
  /// So do ours.
  virtual bool shows_our_waiters() const { return true; }
};

std::unique_ptr<SharedStore> start_zookeeper();
std::unique_ptr<SharedStore> start_redis();
std::unique_ptr<SharedStore> start_memcached();
/// Three servers; `endpoint` is HOST:PORT,HOST:PORT,HOST:PORT.
std::unique_ptr<SharedStore> start_memcached_servers(std::string_view distribution);
/// A folder; `endpoint` is its path, and whatever is held ends with its process.
std::unique_ptr<SharedStore> make_folder();

/// `key` with the lock's name in it.
std::string key_of(std::string_view key, std::string_view name);

}  // namespace dlock::interop

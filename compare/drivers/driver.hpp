// SPDX-License-Identifier: Apache-2.0
//
// A driver: how to lock on one kind of client. Inside this program there are two, `dlock` through
// its public API, and `floor`: the fewest round trips that the store's protocol allows for a lock
// whose release checks its owner, straight on the C client library. Clients in other languages are
// programs that speak the worker's protocol (compare/README.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::compare {

/// One client on one lock. One thread at a time.
class Client {
 public:
  virtual ~Client() = default;
  /// Waits until the lock is ours; throws std::exception when that cannot be.
  virtual void acquire() = 0;
  virtual void release() = 0;
};

/// Many claims of one process, kept until it is destroyed.
class Crowd {
 public:
  virtual ~Crowd() = default;
};

/// Many tasks of one process, each with its own lock.
class Tasks {
 public:
  /// Nanoseconds: of the acquire, and of acquire and release together.
  using OnPair = std::function<void(std::int64_t acquire, std::int64_t pair)>;
  virtual ~Tasks() = default;
  /// Each takes and gives back its lock until `over`, once at least. On the calling thread, as is
  /// `on_pair`.
  virtual void run(const std::atomic<bool>& over, const OnPair& on_pair) = 0;
};

/// Whether others want the lock, too: a floor for hand-over need not be one for a lone client.
enum class Use { own, contended };

/// Members may be called from several threads.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::unique_ptr<Client> client(const std::string& lock, Use use) = 0;
  /// The same lock, to read. A floor has none of these two.
  virtual std::unique_ptr<Client> reader(const std::string& lock);
  /// One permit of the semaphore, which has so many.
  virtual std::unique_ptr<Client> permit(const std::string& semaphore, std::uint32_t limit);
  /// A floor has none: each of its clients is a thread.
  virtual std::unique_ptr<Tasks> tasks(const std::string& lock, std::int64_t count);
  /// Holds `count` locks and keeps their leases alive.
  virtual std::unique_ptr<Crowd> holders(int count) = 0;
  /// `count` claims that wait for one lock that is held.
  virtual std::unique_ptr<Crowd> waiters(int count) = 0;
};

std::unique_ptr<Driver> make_dlock_driver(const std::string& url);
/// For the URL's scheme.
std::unique_ptr<Driver> make_floor_driver(const std::string& url);
/// By name: `dlock` or `floor`; throws std::invalid_argument.
std::unique_ptr<Driver> make_driver(std::string_view name, const std::string& url);

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
//
// Store: a store of locks for the unit tests of a program that uses them. It lives in the test's
// process, and loses, delays and refuses on command, so that what seldom happens happens now. The
// program under test gets a LockManager like any other, or a URL.
//
//   dlock::testing::Store store;
//   auto locks = store.open();
//   Exporter exporter(locks.lock("export"));
//   exporter.start();
//   store.lose("export");                 // returns when the program's handle is lost
//   EXPECT_TRUE(exporter.has_stopped());
//
// Link dlock::testing (find_package(dlock COMPONENTS testing)). Locks behave here by the same code
// as on a real store: local deadlines, renewal, notifications, withdrawal.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::testing {

/// Time limits of the store and the managers: short, because a test waits for them.
struct Times {
  /// How long the store keeps a lock without news from its holder; 100 ms to a day. The holder
  /// renews a third of it after each grant. The loss is reported a drift margin (20 ms at least)
  /// before its end.
  std::chrono::milliseconds lease{10'000};
  /// The managers' connect_timeout, request_timeout and release_timeout; 100 ms or more.
  std::chrono::milliseconds patience{1'000};
};

/// An event of a lock, as the store saw it.
struct Event {
  enum class Kind {
    granted,   ///< also if the answer never arrived
    refused,   ///< by Store::refuse()
    released,  ///< released by its holder
    lost,      ///< dropped by the store, for `reason`; the holder may not know yet
  };
  Kind kind = Kind::granted;
  std::string name;
  std::optional<std::uint64_t> token;
  LossReason reason = LossReason::none;
  std::uint32_t permits = 0;  ///< a semaphore's; 0: it is a lock
};

/// Thread safety: all members from any thread, at any moment of any call. Commands throw only for
/// want of memory or threads.
class Store {
 public:
  /// Empty, and another than every other. Throws LockError{unavailable} for want of threads or
  /// descriptors. Times that cannot be are config_invalid from open().
  explicit Store(Times times = {});
  /// As allow(), reachable() and delay(0). Managers that are still open continue with the present
  /// locks; its URL leads nowhere from now on.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Returns a manager with all its locks in this store. Each manager is a separate client. The
  /// store of its handles is named `default`.
  LockManager open(OpenOptions options = {}) const;
  /// For a program that opens its manager itself, with backend() among OpenOptions::backends.
  std::string url() const;
  /// Returns a configuration with this store, for routes, and for other stores beside it.
  Config config() const;
  static const BackendDescriptor& backend();

  /// Drops the lock and notifies its holder: LossReason::removed if it was deleted, `expired` if it
  /// was frozen for longer than its lease, and so on. Returns when the holder's handle is lost (its
  /// callbacks may be about to run); at once for a holder that is out of reach. In mode shared all
  /// readers lose it. Returns false if no client holds it, or if hold() does.
  bool lose(const std::string& name, LossReason reason = LossReason::removed);
  /// Drops all held permits of that semaphore, or those of one acquisition. See lose().
  bool lose_permits(const std::string& name, LossReason reason = LossReason::removed,
                    std::optional<std::uint64_t> token = std::nullopt);

  /// Delays each answer by this time from now on, also the awaited ones; requests are carried out
  /// at once. 0, the default, ends it. An acquire with a shorter wait (1 s at least), and a release
  /// for which `patience` is too short, end with unavailable. A renewal whose answer is too late
  /// makes the lock suspect, and lost in the end.
  void delay(std::chrono::milliseconds by);

  /// Refuses the next `times` requests for a lock with this error; default: all, until allow().
  /// After `unavailable` an acquire asks again while it waits, and each time counts. Any other
  /// error ends it at once. `text` is the store's text for it (LockError::server_text()).
  void refuse(errc error, std::string text = {}, std::optional<unsigned> times = std::nullopt);
  void allow();

  /// Cuts the link between store and managers. Held locks become suspect now. They become lost at
  /// their local deadline, unless reachable() is called before. Acquires end with unavailable when
  /// their wait, or `patience`, is over. The store keeps a lock until its lease is over, as usual.
  void out_of_reach(std::string why = "the test has cut the link");
  void reachable();

  /// Another client acquires the lock, and keeps it until let_go(). Returns false if it is held, or
  /// waited for. This client has no lease. In mode shared: together with the readers of the lock.
  bool hold(const std::string& name, Mode mode = Mode::exclusive);
  void let_go(const std::string& name);
  /// Another client acquires permits of a semaphore. If the semaphore is unused, its limit is
  /// `limit` from then on. Returns false if too few permits are free, or it has another limit.
  bool hold_permits(const std::string& name, std::uint32_t count, std::uint32_t limit);
  void let_go_permits(const std::string& name);

  /// Another client asks the holder to release the lock, as LockManager::ask() does. Returns false
  /// if no client holds it, or the holder does not listen (AcquireOptions::revocable).
  bool ask_back(const std::string& name,
                std::optional<std::chrono::milliseconds> within = std::nullopt);

  /// Sets the lowest token of acquires that begin from now on. Tokens rise in any case. Default: 1,
  /// 2, 3... for each name.
  void tokens_from(std::uint64_t first);

  /// Returns the token of the holder, or of one of several readers; empty: no client holds the
  /// lock.
  std::optional<std::uint64_t> held(const std::string& name) const;
  /// Returns the number of held permits of the semaphore, hold_permits() included.
  std::uint64_t permits_held(const std::string& name) const;
  /// Returns the number of waiters for the lock; of a semaphore, for permits.
  std::size_t waiting(const std::string& name) const;
  std::size_t waiting_for_permits(const std::string& name) const;
  /// Returns the events in their order; those of hold() and let_go() are not in it.
  std::vector<Event> history() const;
  std::size_t count(Event::Kind kind, const std::string& name) const;

  /// Waits until history() has `times` such events of locks and semaphores of that name. Returns
  /// false if it has not after `patience`.
  bool wait_for(Event::Kind kind, const std::string& name, std::size_t times = 1,
                std::chrono::milliseconds patience = std::chrono::seconds(10)) const;
  /// Waits until `count` clients wait for the lock. Returns false if they do not after `patience`.
  bool wait_for_waiting(const std::string& name, std::size_t count = 1,
                        std::chrono::milliseconds patience = std::chrono::seconds(10)) const;
  bool wait_for_waiting_for_permits(
      const std::string& name, std::size_t count = 1,
      std::chrono::milliseconds patience = std::chrono::seconds(10)) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dlock::testing

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
// Link dlock::testing (find_package(dlock COMPONENTS testing)). What happens to a lock here happens
// by the same code as on a real store: local deadlines, renewal, tellings, withdrawal.
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

/// How patient store and managers are: short, since a test waits for it.
struct Times {
  /// How long the store keeps a lock without news from its holder; 100 ms to a day. A third of it
  /// after each grant the holder renews. Its end is told a drift margin (20 ms at least) earlier.
  std::chrono::milliseconds lease{10'000};
  /// The managers' connect_timeout, request_timeout and release_timeout; 100 ms or more.
  std::chrono::milliseconds patience{1'000};
};

/// What has happened to a lock, as the store saw it.
struct Event {
  enum class Kind {
    granted,   ///< also if the answer never came
    refused,   ///< by Store::refuse()
    released,  ///< given back by its holder
    lost,      ///< dropped by the store, for `reason`; the holder may not have heard yet
  };
  Kind kind = Kind::granted;
  std::string name;
  std::optional<std::uint64_t> token;
  LossReason reason = LossReason::none;
  std::uint32_t permits = 0;  ///< of the semaphore of that name; 0: it is a lock
};

/// Thread safety: all members from any thread; a command may come at any moment of any call. No
/// command throws but for want of memory or threads.
class Store {
 public:
  /// Empty, and another than every other. Throws LockError{unavailable} for want of threads or
  /// descriptors. Times that cannot be are config_invalid from open().
  explicit Store(Times times = {});
  /// As allow(), reachable() and delay(0). Managers that are still open go on with what there is;
  /// its URL leads nowhere from now on.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// A manager all of whose locks are here. Each is a client of its own. The store of its handles
  /// is called `default`.
  LockManager open(OpenOptions options = {}) const;
  /// For a program that opens its manager itself, with backend() among OpenOptions::backends.
  std::string url() const;
  /// Likewise; for routes, and for other stores beside it.
  Config config() const;
  static const BackendDescriptor& backend();

  /// The store drops the lock, and its holder is told: LossReason::removed if it was deleted,
  /// `expired` if it was frozen for longer than its lease, and so on. Returns when the holder's
  /// handle is lost (its callbacks may be about to run); of a holder that is out of reach at once.
  /// Of a lock in mode shared all readers lose it. False: nobody holds it, or hold() does.
  bool lose(const std::string& name, LossReason reason = LossReason::removed);
  /// The same for all permits of that semaphore that somebody has, or for those of one acquisition.
  bool lose_permits(const std::string& name, LossReason reason = LossReason::removed,
                    std::optional<std::uint64_t> token = std::nullopt);

  /// From now on each answer comes so much later, though the request is carried out at once; also
  /// the answers that are awaited now. 0, the default, ends it. An acquire that waits for less (1 s
  /// at least), and a release for which `patience` is too short, end with unavailable. A renewal
  /// that comes too late makes the lock suspect, and lost in the end.
  void delay(std::chrono::milliseconds by);

  /// The next `times` requests for a lock are refused with this; default: all, until allow().
  /// `unavailable` is asked again as long as the acquire waits, and each time counts; any other
  /// ends the acquire at once. `text` is what the store says of it (LockError::server_text()).
  void refuse(errc error, std::string text = {}, std::optional<unsigned> times = std::nullopt);
  void allow();

  /// Nothing passes between store and managers. Locks that are held become suspect now, and lost by
  /// their local deadline, if reachable() does not come before; acquires end with unavailable when
  /// their wait, or `patience`, is over. The store keeps a lock until its lease is over, as ever.
  void out_of_reach(std::string why = "the test has cut the link");
  void reachable();

  /// Somebody else takes the lock, and keeps it until let_go(). False: it is held, or waited for.
  /// This one has no lease. In mode shared: beside the readers of it.
  bool hold(const std::string& name, Mode mode = Mode::exclusive);
  void let_go(const std::string& name);
  /// Likewise with permits of a semaphore, which has `limit` from then on if nobody has used it.
  /// False: not so many are free, or it has another limit.
  bool hold_permits(const std::string& name, std::uint32_t count, std::uint32_t limit);
  void let_go_permits(const std::string& name);

  /// Somebody else asks who holds the lock to give it back, as LockManager::ask() does. False:
  /// nobody holds it, or who does does not listen (AcquireOptions::revocable).
  bool ask_back(const std::string& name,
                std::optional<std::chrono::milliseconds> within = std::nullopt);

  /// The tokens of acquires that begin from now on are `first` or above. They rise in any case, and
  /// are 1, 2, 3... for each name if nothing else is said.
  void tokens_from(std::uint64_t first);

  /// The token of who holds the lock, of several readers one of them; empty: nobody.
  std::optional<std::uint64_t> held(const std::string& name) const;
  /// How many permits of the semaphore are held, hold_permits() included.
  std::uint64_t permits_held(const std::string& name) const;
  /// How many wait for the lock; of a semaphore, for permits.
  std::size_t waiting(const std::string& name) const;
  std::size_t waiting_for_permits(const std::string& name) const;
  /// In the order in which it happened; what hold() and let_go() do is not in it.
  std::vector<Event> history() const;
  std::size_t count(Event::Kind kind, const std::string& name) const;

  /// Of locks and of semaphores of that name. Returns true as soon as there are `times` of them in
  /// history(); false after `patience`.
  bool wait_for(Event::Kind kind, const std::string& name, std::size_t times = 1,
                std::chrono::milliseconds patience = std::chrono::seconds(10)) const;
  /// Same, as soon as `count` of them wait for the lock.
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

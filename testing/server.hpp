// SPDX-License-Identifier: Apache-2.0
//
// Server: what a testing::Store and the backends of its managers share: what the test has
// commanded, and which grants there are. The queues of claims and their tokens are the memory
// store's; what is here is what a lease and a bad day add to it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/testing/store.hpp"

namespace dlock::testing {

/// A lock or a semaphore: of one name they have nothing to do with each other.
struct Thing {
  std::string name;
  bool is_semaphore = false;
  bool operator==(const Thing&) const = default;
};

/// Thread safety: all members from any thread. Listeners are called under the mutex.
class Server {
 public:
  /// One backend; it carries the news to its loop.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The delay or the link may have changed.
    virtual void on_change() = 0;
  };

  static std::shared_ptr<Server> make();
  /// Null: there is no store of that name any more.
  static std::shared_ptr<Server> find(const std::string& name);

  explicit Server(std::string name) : name_(std::move(name)) {}
  /// Of the store in URLs, and of the memory store below it.
  const std::string& name() const noexcept { return name_; }

  void enter(Listener& listener);
  void leave(Listener& listener);

  // What was commanded.
  void set_delay(std::chrono::milliseconds by);
  Duration delay() const;
  void set_refusal(errc error, std::string text, std::optional<unsigned> times);
  void end_refusal();
  /// What the request for this lock is refused with; it counts.
  std::optional<Failure> refusal_of(const std::string& lock);
  /// Clear: there is a link.
  void set_link_failure(Failure why);
  Failure link_failure() const;
  void set_min_token(std::uint64_t token);
  std::uint64_t min_token() const;

  // What was granted, by the owner's id.
  void on_granted(Listener& to, const ClaimRequest& request, std::uint64_t token, TimePoint until);
  /// False: it was dropped.
  bool on_released(const std::string& owner);
  /// Empty: it is good until then. Else why it is gone.
  std::optional<LossReason> on_renewed(const std::string& owner, TimePoint now, TimePoint until);
  /// An operator marks the grant: it is not renewed any more. Returns when its lease is over;
  /// empty: no client holds it with that token.
  std::optional<TimePoint> mark_broken(const Thing& what, std::uint64_t token,
                                       const std::string& by, TimePoint now);
  /// Returns the breaker of that owner's grant; empty: it is not marked.
  std::string broken_by(const std::string& owner) const;
  bool is_granted(const std::string& owner) const;
  /// It is taken from its holders, of permits only from the one with `token` if there is one;
  /// their tokens. Empty: nobody has it.
  std::vector<std::uint64_t> drop(const Thing& what, LossReason why,
                                  std::optional<std::uint64_t> token = std::nullopt);
  /// Likewise, from those whose lease is over.
  std::vector<std::uint64_t> drop_overdue(const Thing& what, TimePoint now);
  /// When the first of the present grants' leases is over; kNever: nobody has it.
  TimePoint until(const Thing& what) const;
  /// Why that owner's grant was dropped; empty: it was not.
  std::optional<LossReason> dropped(const std::string& owner) const;
  /// He knows of that.
  void on_told(const std::string& owner);
  std::optional<std::uint64_t> holder_token(const Thing& what, TimePoint now) const;
  bool is_held_with(const Thing& what, std::uint64_t token, TimePoint now) const;

  /// Returns when whoever had it with `token` knows that it was dropped, or cannot.
  void wait_until_told(const Thing& what, std::uint64_t token);
  std::vector<Event> history() const;
  bool wait_for(Event::Kind kind, const std::string& lock, std::size_t times,
                std::chrono::milliseconds patience) const;

 private:
  struct Grant {
    Listener* to = nullptr;  ///< may have left
    Thing what;
    std::uint32_t permits = 0;
    std::uint64_t token = 0;
    TimePoint until{};
    std::optional<LossReason> dropped{};
    bool is_told = false;  ///< of that
    std::optional<std::string> broken_by{};
  };
  struct Refusal {
    Failure failure;
    std::optional<unsigned> left;
  };

  void drop_locked(Grant& grant, LossReason why);
  /// Of all holders that `which` is true of.
  template <class Which>
  std::vector<std::uint64_t> drop_those(const Thing& what, LossReason why, const Which& which);
  template <class Do>
  void each_holder(const Thing& what, const Do& work) const;
  void announce();
  std::size_t count(Event::Kind kind, const std::string& lock) const;

  const std::string name_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::set<Listener*> listeners_;
  std::chrono::milliseconds delay_{0};
  std::optional<Refusal> refusal_;
  Failure link_failure_;
  std::uint64_t min_token_ = 0;
  std::map<std::string, Grant> grants_;
  std::vector<Event> history_;
};

}  // namespace dlock::testing

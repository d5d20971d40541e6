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
#include "dlock/testing/store.hpp"

namespace dlock::testing {

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
  void on_granted(Listener& to, const std::string& lock, const std::string& owner,
                  std::uint64_t token, TimePoint until);
  /// False: it was dropped.
  bool on_released(const std::string& owner);
  /// Empty: it is good until then. Else why it is gone.
  std::optional<LossReason> on_renewed(const std::string& owner, TimePoint now, TimePoint until);
  bool is_granted(const std::string& owner) const;
  /// The lock is taken from its holder, whose token is returned; empty: nobody has it.
  std::optional<std::uint64_t> drop(const std::string& lock, LossReason why);
  /// Likewise, if its lease is over.
  std::optional<std::uint64_t> drop_overdue(const std::string& lock, TimePoint now);
  /// When the present grant's lease is over; kNever: nobody has it.
  TimePoint until(const std::string& lock) const;
  /// Why that owner's grant was dropped; empty: it was not.
  std::optional<LossReason> dropped(const std::string& owner) const;
  /// He knows of that.
  void on_told(const std::string& owner);
  std::optional<std::uint64_t> holder_token(const std::string& lock, TimePoint now) const;

  /// Returns when whoever had `lock` with `token` knows that it was dropped, or cannot.
  void wait_until_told(const std::string& lock, std::uint64_t token);
  std::vector<Event> history() const;
  bool wait_for(Event::Kind kind, const std::string& lock, std::size_t times,
                std::chrono::milliseconds patience) const;

 private:
  struct Grant {
    Listener* to = nullptr;  ///< may have left
    std::string lock;
    std::uint64_t token = 0;
    TimePoint until{};
    std::optional<LossReason> dropped{};
    bool is_told = false;  ///< of that
  };
  struct Refusal {
    Failure failure;
    std::optional<unsigned> left;
  };

  void drop_locked(Grant& grant, LossReason why);
  /// Null: nobody.
  const Grant* holder(const std::string& lock) const;
  Grant* holder(const std::string& lock) {
    return const_cast<Grant*>(std::as_const(*this).holder(lock));
  }
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

// SPDX-License-Identifier: Apache-2.0
//
// Store: one configured store at work. Connects its backend when first used, checks what it
// promises against `require`, and owns what is under way on it: acquisitions, held locks, releases.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/settings.hpp"
#include "core/fencing/highest_tokens.hpp"
#include "core/loop/task_group.hpp"
#include "core/spi/holder_watches.hpp"
#include "core/store/acquisition.hpp"
#include "core/store/claim_policy.hpp"
#include "core/store/host.hpp"
#include "core/store/renewer.hpp"
#include "core/store/use_limits.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

/// Work on a store that is more than one acquisition, and must end when the store closes.
class BackgroundWork {
 public:
  virtual ~BackgroundWork() = default;
  virtual void close() = 0;
};

/// Loop only, but for name() and settings().
class Store final : public EventSink, public std::enable_shared_from_this<Store> {
 public:
  struct Setup {
    StoreSettings settings;
    StoreOptions options;
    const BackendDescriptor* descriptor = nullptr;
    /// The requirements of all routes to it: for connect() and doctor. An acquire checks only those
    /// of its own route.
    std::vector<std::string> required_by_routes;
  };

  /// Throws LockError{config_invalid} for what the backend refuses.
  Store(Host& host, Setup setup);

  const std::string& name() const noexcept { return setup_.options.name; }
  const Setup& setup() const noexcept { return setup_; }
  Env& env() noexcept { return env_; }
  Backend& backend() noexcept { return *backend_; }
  /// This process, as its claims name it; without an id.
  const Owner& me() const noexcept { return me_; }

  void acquire(std::shared_ptr<Acquisition> acquisition);
  void forget(Acquisition& acquisition);
  /// Runs `work`, and keeps `background` until it is dismissed; closing waits for it.
  void receive(std::shared_ptr<BackgroundWork> background, asio::awaitable<void> work);
  /// Keeps `background` until it is dismissed; closing waits for it.
  void keep(std::shared_ptr<BackgroundWork> background);
  void dismiss(const std::shared_ptr<BackgroundWork>& background) {
    std::erase(background_, background);
  }
  /// Runs `work`, which must end soon; closing waits for it.
  void spawn(asio::awaitable<void> work) { tasks_.spawn(std::move(work)); }

  /// For claims that bring none.
  StorePolicy& policy() noexcept { return *policy_; }
  ClaimPolicy& policy_of(const Acquisition::Request& request) noexcept {
    return request.policy ? *request.policy : *policy_;
  }

  /// Connected already: ready() would not wait, and say what unmet_requirement() does.
  bool is_up() const noexcept { return link_ == Link::up && !closed_; }
  /// Clear if it is good for what is required of it, by its own configuration and by the route's.
  Failure unmet_requirement(const std::vector<std::string>& route_requires) const;
  /// Connected, and good for what is required of it, by its own configuration and by the route's.
  /// Bounded by connect_timeout; callers that arrive while it connects share the attempt.
  /// `patience`: of an attempt that this call begins; default connect_timeout.
  asio::awaitable<Failure> ready(std::vector<std::string> route_requires,
                                 std::optional<std::chrono::milliseconds> patience = std::nullopt);
  /// Connected, whatever it promises (doctor, status).
  asio::awaitable<Failure> connected(
      std::optional<std::chrono::milliseconds> timeout = std::nullopt,
      std::optional<std::chrono::milliseconds> patience = std::nullopt);

  /// Returns the trouble that is known between this process and the store at present.
  Trouble trouble() const;
  /// Returns the text for a wait that ended before the store answered.
  std::string no_answer_words() const;

  /// Makes the claim of a request; a failure if this store cannot grant its lease.
  Failure make_claim(const Acquisition::Request& request, ClaimPtr& claim);
  Duration margin(const Acquisition::Request& request) const;
  Duration request_timeout() const;

  /// invalid_argument if the store has no locks of that mode, or no semaphores. Before it is
  /// reached, too.
  Failure refused_kind(const Acquisition::Request& request) const;
  Failure refused_mode(Mode mode) const;
  Failure refused_permits() const;
  /// not_supported if its grants cannot change their process. Checked before the store is reached,
  /// too.
  Failure refused_adoption() const;

  /// token_regressed if `token` is not above the last one that was handed out for this name (for a
  /// reader: the last exclusive one). The store has then lost its data. A resource that is guarded
  /// by tokens would refuse the grant.
  Failure refused_token(const Acquisition::Request& request, std::uint64_t token) const;

  /// Returns a sentence about the holder of the lock, as far as this process knows it.
  std::string holder_words(const Acquisition::Request& request) const;

  /// A claim was granted: from now on it is renewed, and its token is remembered.
  std::shared_ptr<Hold> hold(const ClaimPtr& claim, const ClaimAnswer& answer,
                             const Acquisition::Request& request);
  void release(const std::shared_ptr<Hold>& hold, Releaser::Done done);
  /// LockHandle::downgrade(). `done` is called once.
  void downgrade(const std::shared_ptr<Hold>& hold, std::shared_ptr<Releaser::Done> done);
  /// LockHandle::export_grant(). `done` is called once.
  void export_grant(const std::shared_ptr<Hold>& hold, std::chrono::milliseconds within,
                    const std::shared_ptr<detail::Grant::Exported>& done);
  /// Grant::renew_within().
  void renew_within(const Hold& hold, Duration time) { renewer_->renew_within(hold, time); }
  void withdraw(const ClaimPtr& claim, std::optional<TimePoint> last_unknown);
  /// The hold is lost, though its claim may be good: that is withdrawn. Harmless if it has ended.
  void drop(const std::shared_ptr<Hold>& hold);
  /// Its user's time is bounded (Hold::bound()): ended when that is over.
  void limit_use(const std::shared_ptr<Hold>& hold) { uses_->add(hold); }
  /// The claim was turned into something else in its place (MigrationStore::seal): it is not
  /// renewed any more, nor released.
  void retire(Hold& hold);

  /// Calls `changed` now, and soon after the holder of that lock may have changed, as far as the
  /// store notifies; until unwatch_holder().
  void watch_holder(const std::string& name, HolderWatches::Id id, HolderWatches::Changed changed);
  void unwatch_holder(const std::string& name, HolderWatches::Id id) noexcept;
  void tell_holder_changed(const std::string& name);

  /// For doctor; `timeout` (default connect_timeout) bounds the wait for a store not yet reached.
  asio::awaitable<StoreReport> report(std::optional<std::chrono::milliseconds> timeout);
  /// Called after the loop has ended: all held locks are lost. A backend that could not be closed
  /// is destroyed, so that none of its threads continues.
  void end() noexcept;
  /// Ends everything in the order that LockManager::close() states, bounded by twice
  /// release_timeout and a little.
  asio::awaitable<void> close();

 private:
  void on_link_up() override;
  void on_link_down(const Failure& why) override;
  void on_session_gone(LossReason why) override;
  void on_claim_gone(const ClaimPtr& claim, LossReason why) override;
  void on_claim_broken(const ClaimPtr& claim, const std::string& by) override;
  void on_contended(const ClaimPtr& claim) override;
  void on_asked(const ClaimPtr& claim, const Revocation& how) override;
  void on_holder_changed(const std::string& name) override { watches_.tell(name); }
  void on_capabilities_changed() override;
  void on_warning(std::string_view text) override;

  asio::awaitable<void> connect(std::chrono::milliseconds patience);
  void set_holder_watches();
  asio::awaitable<void> downgrade_claim(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                        std::shared_ptr<Releaser::Done> done);
  Failure refused_export(const Hold& hold, std::chrono::milliseconds within) const;
  asio::awaitable<void> offer_claim(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                    std::chrono::milliseconds within,
                                    std::shared_ptr<detail::Grant::Exported> done);
  asio::awaitable<Result<std::string>> offer(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                             std::chrono::milliseconds within);
  error_code settle_downgrade(Hold& hold, Claim& claim, const DowngradeAnswer& answer);
  Failure with_address(Failure failure) const;
  asio::awaitable<void> look_again();
  void free_when_left(const std::shared_ptr<Hold>& hold, const ClaimPtr& claim);
  void free_broken(std::uint64_t number);
  void leave_behind(const std::shared_ptr<Hold>& hold);
  asio::awaitable<void> end_holds();
  void take_back(const std::shared_ptr<Hold>& hold, bool is_left);
  Failure refused_wishes(const Acquisition::Request& request) const;
  void warn_once_of_shortfalls();
  void warn_of_unused_cache();
  void expect_contention();
  void report_shortfalls();
  Duration lease_of(const std::optional<std::chrono::milliseconds>& asked,
                    const std::optional<std::chrono::milliseconds>& most = std::nullopt) const;
  ReleaseFsm::Limits release_limits(TimePoint lease_over) const;

  using Acquisitions =
      std::map<std::uint64_t, std::shared_ptr<Acquisition>, std::less<>,
               detail::Recycled<std::pair<const std::uint64_t, std::shared_ptr<Acquisition>>>>;

  Host& host_;
  Env& env_;
  const Setup setup_;
  TaskGroup tasks_;
  TaskGroup connecting_;  ///< apart: closing ends it by closing the backend
  std::unique_ptr<Backend> backend_;
  TimePoint look_again_at_{};
  std::shared_ptr<Renewer> renewer_;
  const std::shared_ptr<UseLimits> uses_;
  Releaser releaser_;
  HolderWatches watches_;
  /// Claims whose records an operator has marked, by number, until their users drop the handles.
  struct Broken {
    std::shared_ptr<Hold> user;
    ClaimPtr claim;
  };
  std::map<std::uint64_t, Broken> broken_;
  Job on_broken_freed_;   ///< end_holds() waits for it
  HighestTokens tokens_;  ///< tokens of the grants that were handed out
  Acquisitions acquisitions_;
  std::vector<std::shared_ptr<BackgroundWork>> background_;  ///< in the order of their arrival
  const std::unique_ptr<StorePolicy> policy_;

  enum class Link { never, connecting, up } link_ = Link::never;
  Failure connect_failure_;
  Trouble link_down_;  ///< while it is
  std::vector<std::shared_ptr<Signal>> connect_waiters_;
  TimerId out_of_reach_timer_ = 0;
  bool warned_ = false;
  bool closed_ = false;
  bool backend_closed_ = false;
  Owner me_;
};

}  // namespace dlock::core

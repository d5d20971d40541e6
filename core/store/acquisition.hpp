// SPDX-License-Identifier: Apache-2.0
//
// Acquisition: one acquire under way. Carries out AcquireFsm against a backend, and completes the
// caller exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/fsm/acquire_fsm.hpp"
#include "core/store/caller.hpp"
#include "core/store/claim_policy.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::core {

class Store;

/// Why errc::queue_full.
std::string queue_full_words(std::size_t waiting, std::uint32_t most);

/// Loop only.
class Acquisition : public std::enable_shared_from_this<Acquisition> {
 public:
  struct Request {
    std::string name;
    Mode mode = Mode::exclusive;
    AcquireFsm::Limits limits;
    std::optional<std::chrono::milliseconds> lease;
    std::vector<std::string> require;  ///< the route's
    std::uint64_t min_token = 0;
    /// The lease is this at most; config_unsafe where it belongs to a longer session.
    std::optional<std::chrono::milliseconds> max_lease;
    /// Null: the store's.
    std::shared_ptr<ClaimPolicy> policy;
    /// Accepts a token that is not above an earlier one: the caller reports another store's token
    /// instead.
    bool token_may_go_back = false;
    Diagnostics* diagnostics = nullptr;
    /// The holder is to be notified when another client asks (ClaimRequest::tell_contention).
    bool tell_contention = false;
    /// The user asked for that notification; a store without it refuses the acquire.
    bool must_tell_contention = false;
    bool revocable = false;
    std::optional<std::uint32_t> max_queue;
    std::chrono::milliseconds head_start{0};  ///< as AcquireOptions'
    std::uint32_t permits = 0;                ///< as ClaimRequest's
    std::uint32_t limit = 0;
    std::shared_ptr<const Adoption> adoption;  ///< as ClaimRequest's
  };

  Acquisition(std::shared_ptr<Store> store, Request request, detail::AcquireHandler handler);

  asio::awaitable<void> run();
  /// Counts the acquisitions of this process.
  std::uint64_t number() const noexcept { return number_; }
  /// After errc::moving: the record in the lock's place (ClaimStatus::sealed).
  const std::string& record() const noexcept { return record_; }
  /// After errc::moving: the present text of the claim's gate (ClaimStatus::gate_changed).
  const std::optional<std::string>& gate() const noexcept { return gate_; }
  /// After an error: the failure to report.
  Failure failure() const;
  /// It was not granted at once: other clients held the lock, or were queued before.
  bool has_waited() const noexcept { return has_waited_; }

  /// Returns the error of a wait for this lock that ends now.
  errc error_at_deadline() const;

  void cancel() { interrupt(fsm_.on_cancel()); }
  void close() { interrupt(fsm_.on_closed()); }
  void out_of_reach(const Failure& why) { interrupt(fsm_.on_out_of_reach(why)); }

 private:
  inline static std::atomic<std::uint64_t> last_number_{0};

  AcquireFsm::Step begin();
  void on_deadline();
  /// It cannot continue.
  void give_up(const std::exception& error);
  /// True if nothing has to be waited for, or refused, before ask().
  bool can_ask();
  asio::awaitable<ClaimAnswer> ask();
  asio::awaitable<ClaimAnswer> claim();
  /// A record is in the lock's place. If the policy removes it, `answer` becomes that of a new
  /// claim.
  asio::awaitable<void> open(ClaimAnswer& answer);
  /// The claim was admitted by information that may be out of date. The grant counts only if the
  /// policy still admits it.
  asio::awaitable<ClaimAnswer> confirm(ClaimAnswer granted);
  /// Makes another claim, because the policy knows more now, or has opened the lock's place. The
  /// previous claim is withdrawn.
  asio::awaitable<ClaimAnswer> claim_anew();
  asio::awaitable<void> wait(TimePoint until);
  AcquireFsm::Step judge(ClaimAnswer& answer);
  bool usable(const ClaimAnswer& answer) const;
  void interrupt(bool tell_now);
  void finish(const ClaimAnswer& last);
  void tell_error();

  const std::uint64_t number_ = ++last_number_;
  const std::shared_ptr<Store> store_;
  const Request request_;
  Caller caller_;
  AcquireFsm fsm_;
  Signal pause_;
  ClaimPtr claim_;
  std::string record_;
  Failure refusal_;         ///< why the grant is refused
  bool has_place_ = false;  ///< in the queue, and it was judged
  bool has_waited_ = false;
  std::optional<std::string> gate_;
};

}  // namespace dlock::core

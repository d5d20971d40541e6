// SPDX-License-Identifier: Apache-2.0
//
// LeasedAcquisition: one acquire of a lock under a leased gate. Executes LeasedAcquireFsm with an
// Acquisition in each store that the gate names. Completes the caller exactly once, with one handle
// for all (leased_hold.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/store/acquisition.hpp"
#include "core/store/store.hpp"
#include "migration/leased/leased_acquire_fsm.hpp"
#include "migration/leased/leased_hold.hpp"

namespace dlock::core::migration {

/// Loop only.
class LeasedAcquisition final : public BackgroundWork,
                                public PartUser,
                                public ReadingListener,
                                public std::enable_shared_from_this<LeasedAcquisition> {
 public:
  /// The diagnostics of `requests.source` are the caller's.
  static std::shared_ptr<LeasedAcquisition> start(LeasedHold::Requests requests,
                                                  detail::AcquireHandler handler);
  LeasedAcquisition(LeasedHold::Requests requests, detail::AcquireHandler handler);

  void cancel() { interrupt(fsm_.on_cancel()); }
  void close() override { interrupt(fsm_.on_closed()); }
  void on_part_change(bool, HandleState, LossReason) noexcept override {}
  void on_part_lost() override { end_wait(); }
  void on_reading(const Reading& reading) override;

 private:
  using Step = LeasedAcquireFsm::Step;

  asio::awaitable<void> run();
  asio::awaitable<Step> read();
  asio::awaitable<Step> lock(bool in_source);
  asio::awaitable<Step> raise();
  void on_outcome(bool in_source, error_code ec, LockHandle handle);
  LeasedAcquireFsm::Facts facts() const;
  bool is_half_lost() const;
  void end_wait();
  void give_back();
  void interrupt(bool tell_now);
  void finish();
  void tell_error();
  const std::shared_ptr<Store>& store(bool in_source) const;
  Env& env() const { return requests_.reader->env(); }

  const LeasedHold::Requests requests_;
  const std::shared_ptr<Store> home_;  ///< whose background it is: its close ends the acquire
  Caller caller_;
  LeasedAcquireFsm fsm_;
  Signal news_;
  std::shared_ptr<Acquisition> inner_;
  std::optional<LeasedAcquireFsm::Outcome> outcome_;
  PartPtr source_;
  PartPtr target_;
  std::string failed_store_;
};

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
//
// DualAcquisition: one acquire of a lock in mode dual. Carries out DualAcquireFsm with an
// Acquisition in each store that the phase locks; tells the caller exactly once, and hands him one
// handle that stands for all (dual_hold.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/store/acquisition.hpp"
#include "core/store/store.hpp"
#include "migration/dual/dual_acquire_fsm.hpp"
#include "migration/dual/dual_hold.hpp"
#include "migration/dual/registrar.hpp"

namespace dlock::core::migration {

/// Loop only.
class DualAcquisition final : public BackgroundWork,
                              public Dependent,
                              public LossListener,
                              public std::enable_shared_from_this<DualAcquisition> {
 public:
  struct Request {
    Acquisition::Request source;  ///< its diagnostics are the caller's
    Acquisition::Request target;
  };

  static std::shared_ptr<DualAcquisition> start(std::shared_ptr<Registrar> registrar,
                                                Request request, detail::AcquireHandler handler);
  DualAcquisition(std::shared_ptr<Registrar> registrar, Request request,
                  detail::AcquireHandler handler);

  void cancel();
  void close() override;
  void on_registration_over(LossReason why) override;
  void on_hold_lost(LossReason why) override;

 private:
  asio::awaitable<void> run();
  asio::awaitable<DualAcquireFsm::Step> enter();
  asio::awaitable<DualAcquireFsm::Step> lock(bool in_source);
  asio::awaitable<DualAcquireFsm::Step> raise();
  asio::awaitable<DualAcquireFsm::Step> settle();
  Acquisition::Request request_for(bool in_source) const;
  void on_outcome(bool in_source, error_code ec, LockHandle handle);
  DualAcquireFsm::Good good() const;
  void end_wait();
  void give_back();
  void interrupt(bool tell_now);
  void finish();
  void tell_error();
  Env& env() const;

  const std::shared_ptr<Registrar> registrar_;
  const std::shared_ptr<Store> home_;  ///< whose background it is: closing that ends it
  const Request request_;
  Caller caller_;
  DualAcquireFsm fsm_;
  Signal news_;
  std::shared_ptr<Registration> registration_;
  std::shared_ptr<Acquisition> inner_;
  std::optional<DualAcquireFsm::Step> step_;
  LockHandle source_;
  LockHandle target_;
  std::shared_ptr<HoldWatch> watch_;  ///< of the store that was locked first, in phase 1
  std::string failed_store_;
};

}  // namespace dlock::core::migration

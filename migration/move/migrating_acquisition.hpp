// SPDX-License-Identifier: Apache-2.0
//
// MigratingAcquisition: one acquire of a lock that is being moved from one store to another.
// Carries out MoveAcquireFsm with an Acquisition in each store. Completes exactly once, with a
// handle of the store that has the lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/acquisition.hpp"
#include "core/store/store.hpp"
#include "migration/move/move_acquire_fsm.hpp"

namespace dlock::core::migration {

/// Loop only.
class MigratingAcquisition final : public BackgroundWork,
                                   public std::enable_shared_from_this<MigratingAcquisition> {
 public:
  struct Request {
    Acquisition::Request source;  ///< its diagnostics are the caller's
    Acquisition::Request target;
    std::string plan;
    Duration poll{};
    std::vector<std::string> stores;  ///< all that are configured
    /// The plan's gate as this process knows it, never null.
    std::shared_ptr<GateBelief> gate;
  };

  static std::shared_ptr<MigratingAcquisition> start(std::shared_ptr<Store> source,
                                                     std::shared_ptr<Store> target, Request request,
                                                     detail::AcquireHandler handler);
  MigratingAcquisition(std::shared_ptr<Store> source, std::shared_ptr<Store> target,
                       Request request, detail::AcquireHandler handler);

  void cancel();
  void close() override;

 private:
  asio::awaitable<void> run();
  asio::awaitable<MoveAcquireFsm::Step> lock(std::shared_ptr<Store> store,
                                             Acquisition::Request request);
  asio::awaitable<MoveAcquireFsm::Step> seal_source();
  asio::awaitable<MoveAcquireFsm::Step> open_target();
  asio::awaitable<MoveAcquireFsm::Step> recheck();
  asio::awaitable<RecordAnswer> read_record();
  /// Runs after the acquire is complete.
  asio::awaitable<void> look_at_gate();
  Acquisition::Request request_for_source();
  Acquisition::Request request_for_target() const;
  void on_outcome(error_code ec, LockHandle handle);
  void interrupt(bool tell_now);
  void finish();
  void tell_error();

  const std::shared_ptr<Store> source_;
  const std::shared_ptr<Store> target_;
  Request request_;
  Caller caller_;
  MoveAcquireFsm fsm_;
  Signal news_;
  std::shared_ptr<Acquisition> inner_;        ///< in progress
  std::optional<MoveAcquireFsm::Step> step_;  ///< the step after the outcome of inner_
  LockHandle handle_;
  std::string failed_store_;
};

}  // namespace dlock::core::migration

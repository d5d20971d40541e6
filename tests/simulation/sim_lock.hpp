// SPDX-License-Identifier: Apache-2.0
//
// SimLock: a lock of a simulated program, for what takes several at once. The recorder hears of
// each part: when it is asked for, granted, given back, lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/store.hpp"
#include "dlock/distributed_lock.hpp"
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation {

/// Of one acquire of several.
struct Parts {
  std::size_t held = 0;              ///< granted and not given back
  std::optional<TimePoint> lost_at;  ///< one of them, and that was told
  std::optional<TimePoint> told_at;  ///< the handle of all has told of it
  std::vector<std::weak_ptr<core::Hold>> holds;
};

class SimLock final : public DistributedLock {
 public:
  /// Who asks for it and in which process; the recorder and the process outlive it.
  struct Asker {
    Recorder* recorder;
    Process* process;
    std::string actor;
    std::shared_ptr<Parts> parts;
    std::string prefix;  ///< of its name, for the recorder
  };
  SimLock(Asker asker, std::shared_ptr<core::Store> store, std::string name);

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return store_->name(); }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override;

 private:
  const Asker asker_;
  const std::shared_ptr<core::Store> store_;
  const std::string name_;
};

}  // namespace dlock::simulation

// SPDX-License-Identifier: Apache-2.0
//
// LeasedHold: a hold under a leased gate, which the user has as one handle. It is in one store or
// in both, and moves from the one to the other as the gate turns, without an interruption.
//
//   in one store   valid while the newest reading that named that store alone counts
//   in both        needs no reading; lost with either lock
//
// When a reading names both stores, or only the other one, it acquires the second lock in the
// background. When a reading says that one is enough, it releases the other. Its token is always
// that of the first lock. docs/models/leased.pml.
//
// After a loss, the locks stay in the stores until the user lets go of the handle, or until the
// time that the user was promised: the user has not stopped before.
#pragma once

#include <memory>
#include <mutex>

#include "core/store/acquisition.hpp"
#include "migration/leased/gate_reader.hpp"
#include "migration/leased/leased_part.hpp"

namespace dlock::core::migration {

class LeasedHold final : public HoldDependency,
                         public PartUser,
                         public ReadingListener,
                         public std::enable_shared_from_this<LeasedHold> {
 public:
  /// How the locks are acquired.
  struct Requests {
    std::shared_ptr<GateReader> reader;
    Acquisition::Request source;
    Acquisition::Request target;
  };

  /// Returns the handle for the user. One part may be null. `reading` counts now. Loop only.
  static LockHandle join(Requests requests, PartPtr source, PartPtr target, bool is_source_shown,
                         const Reading& reading);
  /// For join().
  LeasedHold(Requests requests, PartPtr source, PartPtr target, TimePoint gate_until);
  ~LeasedHold() override;

  struct Places {
    bool in_source;
    bool in_target;
  };
  /// Where it has locks now. Any thread.
  Places places() const;

  TimePoint until() const noexcept override;
  LossReason why() const noexcept override;
  std::string broken_by() override;
  bool take_back(Hold& hold, Releaser::Done& done) override;
  void on_inherited() noexcept override;
  void on_lost(LossReason why) override;
  void on_let_go() override { give_back(); }

  void on_part_change(bool in_source, HandleState state, LossReason why) noexcept override;
  std::shared_ptr<Hold> user() noexcept override { return user_.lock(); }

  void on_reading(const Reading& reading) override;
  void on_reading_failed() override;

 private:
  struct Parts {
    PartPtr source;
    PartPtr target;
    bool are_both() const noexcept { return source && target; }
  };

  Parts parts() const;
  Parts take_parts();
  TimePoint gate_until() const;
  void become_sure_or_not() noexcept;
  void believe_until(TimePoint gate_until);
  void arm(TimePoint when);
  void let_go_of(bool in_source, TimePoint gate_until);
  void take_second(bool in_source);
  static asio::awaitable<void> acquire_second(std::weak_ptr<LeasedHold> weak, bool in_source);
  bool wants_second(bool in_source) const;
  void join_second(LockHandle granted, bool in_source);
  void cancel_second();
  TimePoint promised() const;
  void give_back();
  Env& env() const { return requests_.reader->env(); }

  const Requests requests_;
  std::weak_ptr<Hold> user_;

  mutable std::mutex mutex_;
  // It guards:
  Parts parts_;
  TimePoint gate_until_;                         ///< kNever: it is in both, or the gate is FINAL
  bool is_doubtful_[3] = {false, false, false};  ///< the source, the target, the gate

  // Loop only.
  TimerId timer_ = 0;
  bool is_taking_second_ = false;
  std::weak_ptr<Acquisition> second_;
  bool is_over_ = false;
};

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
//
// GateReader: what the locks of this program know of a leased gate. It reads the gate before the
// first acquire, and every third of a lease while a lock is held or waited for. A reading counts
// from before its request was sent. One for each plan and manager.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlock/spi/signal.hpp"
#include "migration/leased/leased_note.hpp"

namespace dlock::core::migration {

/// One text of the gate as this program read it.
struct Reading {
  LeasedGate gate;
  std::string text;
  TimePoint sent{};   ///< before its request
  TimePoint until{};  ///< it counts until then; kNever: the gate is FINAL
};
using ReadingPtr = std::shared_ptr<const Reading>;

/// Loop only.
class ReadingListener {
 public:
  virtual ~ReadingListener() = default;
  virtual void on_reading(const Reading& reading) = 0;
  /// The gate could not be read. The next attempt follows.
  virtual void on_reading_failed() {}
};

/// Loop only.
class GateReader final : public BackgroundWork, public std::enable_shared_from_this<GateReader> {
 public:
  GateReader(LeasedStores stores, std::string plan);
  ~GateReader() override = default;

  struct Answer {
    Failure failure;
    ReadingPtr reading;  ///< null on a failure
  };
  /// The newest reading that counts. Reads the gate if there is none. Failures: no_gate (none is
  /// there, or that of another start of the plan), config_unsafe (it is for other stores),
  /// unavailable, closed, protocol.
  asio::awaitable<Answer> reading();
  /// Raises the ceiling to `token` at least. A failure if another program changed the gate
  /// (unavailable) or it cannot be written.
  asio::awaitable<Answer> raise(ReadingPtr under, std::uint64_t token);
  /// Null: none counts now. Sends nothing.
  ReadingPtr newest() const;
  /// The gate is read regularly while a listener exists.
  void add(std::weak_ptr<ReadingListener> listener);

  /// Ends the regular readings permanently.
  void close() override;

  const LeasedStores& stores() const noexcept { return stores_; }
  const std::string& plan() const noexcept { return plan_; }
  /// The id of the plan's start that this program takes part in; empty before the first reading.
  const std::string& plan_id() const noexcept { return plan_id_; }
  /// By the newest reading, whether it counts still or not.
  std::uint64_t floor() const noexcept { return newest_ ? newest_->gate.floor : 0; }
  Env& env() const { return stores_.gate->env(); }

 private:
  using Waiter = OneShot<Failure>;

  asio::awaitable<void> run();
  asio::awaitable<Failure> read_now();
  Failure refused(const LeasedNote::Look& look) const;
  void learn(LeasedGate gate, std::string text, TimePoint sent);
  bool is_final() const noexcept;
  bool has_listeners();
  TimePoint next_due();

  const LeasedStores stores_;
  const std::string plan_;
  LeasedNote note_;
  ReadingPtr newest_;
  std::string plan_id_;  ///< from the first reading
  std::shared_ptr<Signal> news_;
  std::vector<Waiter> waiters_;
  std::vector<std::weak_ptr<ReadingListener>> listeners_;
  TimePoint read_at_{};
  bool running_ = false;
  bool closed_ = false;
};

}  // namespace dlock::core::migration

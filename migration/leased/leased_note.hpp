// SPDX-License-Identifier: Apache-2.0
//
// The leased gate in its store: read, and compared-and-set.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "core/store/store.hpp"
#include "migration/leased/leased_gate.hpp"

namespace dlock::core::migration {

/// The stores of a plan with a leased gate; the gate's is the target or a third one.
struct LeasedStores {
  std::shared_ptr<Store> from;
  std::shared_ptr<Store> to;
  std::shared_ptr<Store> gate;
};

/// Loop only.
class LeasedNote {
 public:
  LeasedNote(LeasedStores stores, std::string plan)
      : stores_(std::move(stores)), store_(stores_.gate), plan_(std::move(plan)) {}

  struct Look {
    Failure failure;                  ///< it could not be read, or not understood (errc::protocol)
    std::optional<std::string> text;  ///< empty: there is none
    std::optional<LeasedGate> gate;
    TimePoint sent{};      ///< before the request
    TimePoint answered{};  ///< when the answer arrived
  };
  /// Connects the store if necessary. The answer contains all writes that were done before.
  asio::awaitable<Look> read();

  struct Written {
    enum class Outcome { done, conflict, unknown, failed };
    Outcome outcome = Outcome::failed;
    Failure failure;   ///< if the outcome is `failed`
    TimePoint sent{};  ///< before the request
  };
  /// Replaces `from` by `to`. An empty `from` means that no gate exists. After a conflict and
  /// `unknown`, read() returns the present gate. A higher ceiling is remembered before.
  asio::awaitable<Written> write(std::optional<std::string> from, LeasedGate to);
  /// Returns the highest ceiling of the plan's gates, also of those that are lost; or 0.
  asio::awaitable<Result<std::uint64_t>> highest_ceiling();

 private:
  asio::awaitable<Result<std::uint64_t>> ceiling_in(std::shared_ptr<Store> store);
  /// Raises the note in the target, which is not lost together with the gate's store. If the target
  /// does not answer, raises the note in the gate's store.
  asio::awaitable<Failure> remember(std::uint64_t ceiling);
  asio::awaitable<Failure> remember_in(std::shared_ptr<Store> store, std::uint64_t ceiling);

  const LeasedStores stores_;
  const std::shared_ptr<Store> store_;
  const std::string plan_;
};

}  // namespace dlock::core::migration

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
  LeasedNote(std::shared_ptr<Store> store, std::string plan)
      : store_(std::move(store)), plan_(std::move(plan)) {}

  struct Look {
    Failure failure;                  ///< it could not be read, or not understood (errc::protocol)
    std::optional<std::string> text;  ///< empty: there is none
    std::optional<LeasedGate> gate;
    TimePoint sent{};      ///< before the request
    TimePoint answered{};  ///< when the answer came
  };
  /// Connects the store if necessary. The answer contains all writes that were done before.
  asio::awaitable<Look> read();

  struct Written {
    enum class Outcome { done, conflict, unknown, failed };
    Outcome outcome = Outcome::failed;
    Failure failure;   ///< of failed
    TimePoint sent{};  ///< before the request
  };
  /// Replaces `from` by `to`; an empty `from`: there is no gate. After a conflict and `unknown`,
  /// read() tells what is there.
  asio::awaitable<Written> write(std::optional<std::string> from, LeasedGate to);

 private:
  const std::shared_ptr<Store> store_;
  const std::string plan_;
};

}  // namespace dlock::core::migration

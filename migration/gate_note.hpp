// SPDX-License-Identifier: Apache-2.0
//
// The gate of a plan as it stands in the source store. Each turn is a compare-and-set, and may be
// repeated by anybody: no text of a gate comes back.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "core/store/store.hpp"
#include "migration/gate.hpp"

namespace dlock::core::migration {

/// Loop only.
class GateNote {
 public:
  GateNote(std::shared_ptr<Store> source, std::string plan)
      : source_(std::move(source)), plan_(std::move(plan)) {}

  /// What stands there. `failure`: it could not be read, or is not understood (errc::protocol).
  struct Look {
    Failure failure;
    std::string text;  ///< empty: there is none
    std::optional<Gate> gate;
  };
  /// Connects the store if need be.
  asio::awaitable<Look> read();
  /// Replaces what `from` has seen by `to`. What stands there then, whoever wrote it.
  asio::awaitable<Look> turn(Look from, Gate to);

 private:
  Look look_at(const RecordAnswer& answer) const;

  const std::shared_ptr<Store> source_;
  const std::string plan_;
};

}  // namespace dlock::core::migration

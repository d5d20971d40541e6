// SPDX-License-Identifier: Apache-2.0
//
// What finished plans that govern patterns have left behind them: which locks are not in a store
// any more. Such a plan leaves no record in the place of a lock that nobody has asked for since,
// and its programs lock the target alone. So a plan that begins in the source once more would not
// meet them.
//
// Notes, lists of plans' names:
//   plans-left  in the source: they went from there (the text is in plan/NAME)
//   plans-came  in the target: they came there (home/NAME); the source may forget
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "core/store/store.hpp"
#include "dlock/spi/error.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {

class Departures {
 public:
  Departures(std::shared_ptr<Store> from, std::shared_ptr<Store> to)
      : from_(std::move(from)), to_(std::move(to)) {}

  /// config_unsafe: a finished plan took some of the plan's locks out of the source.
  boost::asio::awaitable<Failure> objection(Plan plan);
  /// The plan is finished. Brings back what a plan in the other direction had taken, if it has all
  /// of that one's patterns and names. Can be repeated.
  boost::asio::awaitable<Failure> note(Plan plan);

 private:
  const std::shared_ptr<Store> from_;
  const std::shared_ptr<Store> to_;
};

}  // namespace dlock::core::migration

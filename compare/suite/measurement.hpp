// SPDX-License-Identifier: Apache-2.0
//
// How one driver is measured in a scenario of speed. What is kept in a result: `values` by the ids
// of the scenario's metrics, and histograms.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <memory>

#include "compare/suite/context.hpp"
#include "compare/suite/peers.hpp"

namespace dlock::compare {

/// One measurement: of a scenario, with a driver, at one value of its parameter.
struct Case {
  Context& context;
  Store& store;
  const boost::json::object& scenario;
  DriverProgram driver;
  std::int64_t param;
  int repeat;
  std::chrono::milliseconds duration;
  int begun_anew = 0;  ///< what it held before may still be held

  boost::json::object job(const char* program) const;
};

/// What one driver shows in one scenario. It stays ready between its slices, so that those of the
/// drivers can alternate: what else the machine does strikes them alike.
class Measurement {
 public:
  virtual ~Measurement() = default;
  /// Empty: there is nothing to measure.
  virtual boost::json::object slice() = 0;
};

/// What a worker's answer to `pairs` says. A slice in which nobody came to lock, on a machine that
/// is busy with other things, has a rate and no latency: 0 would be the best of all.
boost::json::object values_of_pairs(const boost::json::object& result);

/// Starts and warms up what is needed. Throws std::runtime_error when it does not come to be ready,
/// Interrupted when the run is to end; so does slice().
std::unique_ptr<Measurement> make_measurement(const Case& one);

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
//
// Figures out of a run's raw results: medians over the samples, ratios within each sample.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/drivers/histogram.hpp"
#include "compare/report/evidence.hpp"

namespace dlock::compare {

struct Spot {
  std::string_view scenario;
  std::string_view store;
  std::string_view driver;
  std::int64_t param = 0;
};

class Figures {
 public:
  explicit Figures(const boost::json::object& raw) : raw_(raw) {}

  const boost::json::object& raw() const { return raw_; }
  /// What else the machine did was so much that nothing is called good or bad.
  bool is_busy() const;
  std::optional<Figure> figure(const Spot& spot, std::string_view metric) const;
  /// Of a scenario's metric: as above, or a percentile of all values together, if there are enough.
  std::optional<Figure> measured(const Spot& spot, const boost::json::object& metric) const;
  /// Of `spot` to the same with another driver.
  std::optional<Figure> ratio(const Spot& spot, std::string_view to_driver,
                              std::string_view metric) const;
  /// Of all samples together.
  std::optional<Histogram> histogram(const Spot& spot, std::string_view name) const;
  /// Why there is no figure; empty if there is none to tell.
  std::string failure(const Spot& spot) const;
  /// The parameters and drivers that were measured, in the order of the results.
  std::vector<std::int64_t> params(std::string_view scenario) const;
  std::vector<std::string> drivers(std::string_view scenario, std::string_view store) const;
  /// Results of a kind and scenario; of any store if that is empty.
  std::vector<const boost::json::object*> results(std::string_view kind, std::string_view scenario,
                                                  std::string_view store = {}) const;

 private:
  std::map<std::int64_t, Sample> by_repeat(const Spot& spot, std::string_view metric) const;
  std::vector<const boost::json::object*> at(const Spot& spot) const;

  const boost::json::object& raw_;
};

/// "12,345".
std::string show_count(std::uint64_t count);

/// "1.23 ms" of microseconds, "12,300", "0.98".
std::string show(double value, std::string_view unit);

}  // namespace dlock::compare

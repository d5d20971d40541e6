// SPDX-License-Identifier: Apache-2.0
//
// Latencies in the manner of HdrHistogram: exact below a microsecond, three significant digits
// above, in a fixed amount of memory however many there are. (Debian carries that library for Java
// and Go only.) Values are nanoseconds.
#pragma once

#include <array>
#include <boost/json/value.hpp>
#include <cstdint>

namespace dlock::compare {

/// Not thread-safe; distinct objects are independent.
class Histogram {
 public:
  void add(std::uint64_t value_ns, std::uint64_t times = 1);
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  double mean_ns() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  /// The value that `percent` of all values do not exceed; 0 when empty.
  double percentile_ns(double percent) const;

  /// {"count","mean_us","p50_us",...,"max_us","buckets":[[ns, times],...]}
  boost::json::value to_json() const;
  /// Of the buckets; the rest follows from them.
  static Histogram from_json(const boost::json::value& json);

 private:
  static constexpr std::size_t kHalf = 512;
  static std::size_t index_of(std::uint64_t value);
  static std::uint64_t value_of(std::size_t index);

  std::array<std::uint64_t, kHalf * 56> buckets_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace dlock::compare

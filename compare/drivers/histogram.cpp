// SPDX-License-Identifier: Apache-2.0
#include "compare/drivers/histogram.hpp"

#include <algorithm>
#include <bit>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

namespace dlock::compare {

// A value is kept as its ten highest bits: below 1024 as it is, above with a shift. The upper half
// of those 1024 numbers is what each shift has of its own.
std::size_t Histogram::index_of(std::uint64_t value) {
  if (value < 2 * kHalf) return value;
  const auto shift = static_cast<std::size_t>(std::bit_width(value)) - 10;
  return std::min(shift * kHalf + static_cast<std::size_t>(value >> shift), kHalf * 56 - 1);
}

std::uint64_t Histogram::value_of(std::size_t index) {
  if (index < 2 * kHalf) return index;
  const std::size_t shift = index / kHalf - 1;
  const std::uint64_t low = static_cast<std::uint64_t>(index - shift * kHalf) << shift;
  return low + (std::uint64_t{1} << shift) / 2;
}

void Histogram::add(std::uint64_t value_ns, std::uint64_t times) {
  buckets_[index_of(value_ns)] += times;
  count_ += times;
  sum_ += static_cast<double>(value_ns) * static_cast<double>(times);
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

double Histogram::percentile_ns(double percent) const {
  const auto wanted = static_cast<std::uint64_t>(
      std::ceil(std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (buckets_[i] != 0 && seen >= wanted) return static_cast<double>(value_of(i));
  }
  return 0;
}

boost::json::value Histogram::to_json() const {
  boost::json::array buckets;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] != 0) buckets.push_back({value_of(i), buckets_[i]});
  }
  const auto us = [this](double percent) { return percentile_ns(percent) / 1000; };
  return boost::json::object{{"count", count_},   {"mean_us", mean_ns() / 1000},
                             {"p50_us", us(50)},  {"p90_us", us(90)},
                             {"p99_us", us(99)},  {"p999_us", us(99.9)},
                             {"max_us", us(100)}, {"buckets", std::move(buckets)}};
}

Histogram Histogram::from_json(const boost::json::value& json) {
  Histogram result;
  for (const auto& bucket : json.at("buckets").as_array()) {
    result.add(bucket.at(0).to_number<std::uint64_t>(), bucket.at(1).to_number<std::uint64_t>());
  }
  return result;
}

}  // namespace dlock::compare

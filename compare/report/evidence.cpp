// SPDX-License-Identifier: Apache-2.0
#include "compare/report/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace dlock::compare {

namespace {

constexpr double kDoubt = 0.05;

/// How many of `count` sorted values lie outside the 95 % confidence interval of their median, on
/// each side: whatever they are distributed like, as many heads or fewer come in `count` throws of
/// a coin with 2.5 % at most (order statistics).
std::size_t outside_interval(std::size_t count) {
  double chance = std::pow(0.5, static_cast<double>(count));  // of `outside` heads
  double sum = 0;
  for (std::size_t outside = 0;; ++outside) {
    sum += chance;
    if (sum > kDoubt / 2) return outside == 0 ? 0 : outside - 1;
    chance *= static_cast<double>(count - outside) / static_cast<double>(outside + 1);
  }
}

double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

std::optional<Figure> summary(const std::vector<Sample>& samples) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> values;
  std::map<std::int64_t, std::vector<double>> rounds;
  for (const auto& sample : samples) {
    values.push_back(sample.value);
    rounds[sample.round].push_back(sample.value);
  }
  const double median = median_of(values);
  Figure figure{median, median, median, values.size()};
  if (!figure.has_interval()) return figure;
  const auto outside = outside_interval(values.size());
  figure.low = values[outside];
  figure.high = values[values.size() - 1 - outside];
  for (auto& [round, of_round] : rounds) {
    const double one = median_of(of_round);
    figure.low = std::min(figure.low, one);
    figure.high = std::max(figure.high, one);
  }
  return figure;
}

bool enough_for(double percent, std::uint64_t count) {
  return count > 0 && std::pow(percent / 100, static_cast<double>(count)) <= kDoubt;
}

double at_most_percent(std::size_t tries) {
  return tries == 0 ? 100 : 100 * (1 - std::pow(kDoubt, 1.0 / static_cast<double>(tries)));
}

std::string show_ratio(const Figure& ratio, std::string_view of) {
  const auto interval =
      ratio.has_interval() ? fmt::format("{:.2f} to {:.2f}, ", ratio.low, ratio.high) : "";
  return fmt::format("{:.2f} ×{} ({}n {}{})", ratio.value, of, interval, ratio.samples,
                     ratio.is_enough() ? "" : ": too few to judge");
}

bool is_worse(const Figure& ratio, Better better, double by) {
  if (!ratio.is_enough()) return false;
  return better == Better::lower ? ratio.low > by : ratio.high < 1 / by;
}

std::string_view tone_of(const Figure& ratio, Better better, bool busy) {
  if (!ratio.is_enough()) return "thin";
  if (busy) return "";
  const bool is_better = better == Better::lower ? ratio.high < 1 : ratio.low > 1;
  if (is_better) return "good";
  return is_worse(ratio, better, 1.5) ? "warn" : "";
}

Difference difference(const Figure& one, const Figure& other) {
  if (!one.is_enough() || !other.is_enough()) return Difference::too_few;
  return one.high < other.low || other.high < one.low ? Difference::differs
                                                      : Difference::none_shown;
}

}  // namespace dlock::compare

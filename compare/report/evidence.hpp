// SPDX-License-Identifier: Apache-2.0
//
// How much a figure is worth: how many samples it comes from, what it may be at worst, and whether
// that is enough to call it good or bad.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::compare {

/// Fewer samples judge nothing: what comes from them is grey, and says so.
inline constexpr std::size_t kEnough = 30;

/// A median, with its 95 % confidence interval if there are samples enough for one.
struct Figure {
  double value = 0;
  double low = 0, high = 0;  ///< equal to `value` without an interval
  std::size_t samples = 0;

  /// Of five values or fewer not even the extremes enclose the median by 95 %.
  bool has_interval() const { return samples >= 6; }
  bool is_enough() const { return samples >= kEnough; }
};

/// One value of a sample, and which round of the run it comes from. Rounds are minutes apart: what
/// lasts for one round strikes all its samples.
struct Sample {
  double value = 0;
  std::int64_t round = 0;
};

/// nullopt of nothing. The interval is that of order statistics, and wide enough for the median of
/// each round.
std::optional<Figure> summary(const std::vector<Sample>& samples);

/// Whether a percentile can be told from so many values: with 95 % at least one lies beyond it.
bool enough_for(double percent, std::uint64_t count);

/// What `tries` in which it never came leave possible, in percent of all such, by 95 %.
double at_most_percent(std::size_t tries);

/// "1.21 × (1.15 to 1.30, n 30)", "1.21 × (n 3: too few to judge)"; `of` stands behind the ×.
std::string show_ratio(const Figure& ratio, std::string_view of = {});

enum class Better { lower, higher };
/// `good` or `warn` where the whole interval is on one side: better than the floor, worse by half.
/// `thin`: too few samples. Empty: neither, or the machine was busy.
std::string_view tone_of(const Figure& ratio, Better better, bool busy);

/// Whether the whole interval says that it is worse by more than that factor.
bool is_worse(const Figure& ratio, Better better, double by);

/// What two runs have to say to each other.
enum class Difference { differs, none_shown, too_few };
Difference difference(const Figure& one, const Figure& other);

}  // namespace dlock::compare

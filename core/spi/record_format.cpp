// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/record_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace dlock::inline v0 {

unsigned format_of(std::string_view record, std::string_view stamp) noexcept {
  if (!record.starts_with(stamp)) return 0;
  record.remove_prefix(stamp.size());
  const auto digits =
      record.substr(0, std::min(record.find_first_not_of("0123456789"), record.size()));
  unsigned format = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), format);
  if (read.ec == std::errc::result_out_of_range) return std::numeric_limits<unsigned>::max();
  return format;
}

std::string newer_format(std::string_view what, std::string_view record, std::string_view stamp,
                         unsigned known) {
  const auto format = format_of(record, stamp);
  if (format <= known) return {};
  return fmt::format("{} has format {}; this program reads format {}; upgrade it", what, format,
                     known);
}

}  // namespace dlock::inline v0

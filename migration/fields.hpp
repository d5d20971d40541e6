// SPDX-License-Identifier: Apache-2.0
//
// Reads a text that begins with `word key=value key=value`, strictly and from left to right; the
// first thing that is wrong stays. For records and plans: they come from a store that others can
// write to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dlock::core::migration {

/// What a time or a duration may be: past the year 5000.
inline constexpr std::uint64_t kMostMilliseconds = 99'999'999'999'999;

inline bool is_lower_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

class Fields {
 public:
  /// Fields are separated by `separator`.
  Fields(std::string_view text, char separator) : rest_(text), separator_(separator) {}

  bool good() const noexcept { return error_.empty(); }
  const std::string& error() const noexcept { return error_; }
  void fail(std::string error);

  /// The next field as it is.
  std::string_view word(std::string_view what);
  /// Reads the first field, which must be the stamp and the number: `dlock-move1`. The error of a
  /// newer format has both numbers.
  void format(std::string_view stamp, unsigned known);
  /// The value of the next field, which must be `key=...`.
  std::string_view value(std::string_view key);
  /// The value of the next field, which must be the name of a plan or of a store.
  std::string name(std::string_view key);
  /// Decimal, without leading zeros, at most `most`.
  std::uint64_t number(std::string_view key, std::uint64_t most);
  std::uint64_t number_in(std::string_view digits, std::string_view key, std::uint64_t most);
  /// Nothing may be left.
  void end();

 private:
  std::string_view rest_;
  const char separator_;
  bool over_ = false;
  std::string error_;
};

}  // namespace dlock::core::migration

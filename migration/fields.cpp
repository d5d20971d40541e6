// SPDX-License-Identifier: Apache-2.0
#include "migration/fields.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/spi/word.hpp"
#include "dlock/spi/record_format.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

void Fields::fail(std::string error) {
  if (error_.empty()) error_ = std::move(error);
}

std::string_view Fields::word(std::string_view what) {
  if (!good()) return {};
  if (over_) {
    fail(fmt::format("it ends before its {}", what));
    return {};
  }
  const auto end = rest_.find(separator_);
  over_ = end == std::string_view::npos;
  const auto taken = rest_.substr(0, end);
  rest_.remove_prefix(over_ ? rest_.size() : end + 1);
  return taken;
}

void Fields::format(std::string_view stamp, unsigned known) {
  const auto first = word("format");
  if (!good() || first == fmt::format("{}{}", stamp, known)) return;
  auto newer = newer_format("it", first, stamp, known);
  const bool is_newer = !newer.empty();
  fail(is_newer ? std::move(newer) : fmt::format("it does not begin with '{}{}'", stamp, known));
}

std::string_view Fields::value(std::string_view key) {
  const auto field = word(key);
  if (!good()) return {};
  if (!field.starts_with(key) || field.substr(key.size(), 1) != "=") {
    fail(fmt::format("'{}=' is expected where it has something else", key));
    return {};
  }
  return field.substr(key.size() + 1);
}

std::string Fields::name(std::string_view key) {
  const auto word = value(key);
  if (good() && !is_word(word)) {
    fail(fmt::format("its {} is not a name of letters, digits, '-', '_', '.'", key));
  }
  return std::string(word);
}

std::uint64_t Fields::number(std::string_view key, std::uint64_t most) {
  const auto digits = value(key);
  return number_in(digits, key, most);
}

std::uint64_t Fields::number_in(std::string_view digits, std::string_view key, std::uint64_t most) {
  if (!good()) return 0;
  std::uint64_t number = 0;
  const auto* const last = digits.data() + digits.size();
  const auto [stop, failed] = std::from_chars(digits.data(), last, number);
  const bool padded = digits.size() > 1 && digits.front() == '0';
  if (digits.empty() || failed != std::errc() || stop != last || padded || number > most) {
    fail(fmt::format("its {} is not a decimal number of at most {}", key, most));
    return 0;
  }
  return number;
}

void Fields::end() {
  if (good() && !over_) fail("something follows its end");
}

}  // namespace dlock::core::migration

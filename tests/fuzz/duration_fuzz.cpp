// SPDX-License-Identifier: Apache-2.0
#include "dlock/duration.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto text = as_text(data, size);
  const auto parsed = parse_duration(text);
  require(parsed.error.empty() == parsed.value.has_value(), "a value or an error");
  if (!parsed) return 0;
  require(parsed.value->count() >= 0, "never negative");
  require(parsed.value->count() <= 36'500LL * 86'400'000, "never longer than a century");
  const auto again = parse_duration(format_duration(*parsed.value));
  require(again && *again.value == *parsed.value, "it is read back as it was written");
  return 0;
}

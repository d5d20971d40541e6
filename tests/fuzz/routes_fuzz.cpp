// SPDX-License-Identifier: Apache-2.0
//
// Which store a lock goes to. Input: two patterns and a name, a line each.
#include "core/config/routes.hpp"

#include "dlock/spi/name.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  auto text = as_text(data, size);
  const auto first = take_until(text, '\n');
  const auto second = take_until(text, '\n');
  const auto name = take_until(text, '\n');
  if (!core::pattern_error(first).empty() || !core::pattern_error(second).empty()) return 0;
  if (!name_error(name).empty()) return 0;
  require(core::pattern_matches("**", name), "** matches every name");
  require(core::pattern_matches(name, name) || name.find('*') != name.npos,
          "a literal matches itself");
  if (core::pattern_covers(first, second) && core::pattern_matches(second, name)) {
    require(core::pattern_matches(first, name), "what covers a pattern matches its names");
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// A function as compilers spell it: the default lock name of `synchronized`.
#include "core/manager/function_name.hpp"

#include "dlock/spi/name.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto found = core::function_name(as_text(data, size));
  require(found.name.empty() != found.problem.empty(), "a name or a problem");
  if (!found.name.empty()) require(name_error(found.name).empty(), "a name is a lock name");
  return 0;
}

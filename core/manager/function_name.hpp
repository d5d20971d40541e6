// SPDX-License-Identifier: Apache-2.0
//
// A function's qualified name out of what the compiler calls it (std::source_location, in the
// spelling of g++ and of clang), for the default lock name of `synchronized`. Pure.
#pragma once

#include <string>
#include <string_view>

namespace dlock::core {

struct FunctionName {
  std::string name;     ///< `ns::Type::f`; empty if no stable one exists
  std::string problem;  ///< then: why
};

/// Without return type, parameters and qualifiers, so that overloads share one name. An inline
/// namespace is spelled out by g++ and left out by clang; it cannot be seen here.
FunctionName function_name(std::string_view pretty);

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace dlock::compare {

/// A file of compare/ (or a library's) as it was when this was built; throws std::out_of_range.
std::string_view embedded(std::string_view name);

}  // namespace dlock::compare

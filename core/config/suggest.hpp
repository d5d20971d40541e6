// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the known word nearest to one that was mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlock::core {

/// The nearest candidate if it is near enough to be what was meant, else empty.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

/// `did you mean 'x'?` if there is a near one, else `known: a, b, c`.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the known word nearest to one that was mistyped. The core says it of option names
// and of choices; a backend may, of what only its own code can check.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <span>
#include <string>
#include <string_view>

namespace dlock::inline v0 {

/// The nearest candidate if it is near enough to be what was meant, else empty. Case does not
/// count, and `-` is `_`. Any thread.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

/// `did you mean 'x'?` if there is a near one, else `known: a, b, c`. Any thread.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace dlock::inline v0

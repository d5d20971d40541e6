// SPDX-License-Identifier: Apache-2.0
//
// Lock names: what is one, and how backends spell it. A name is 1-512 bytes of UTF-8, parts
// separated by `/`, no part empty, `.` or `..`, no control byte.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::inline v0 {

/// Empty if the name is valid, else a sentence that says what is wrong and where.
std::string name_error(std::string_view name);

std::vector<std::string_view> split_name(std::string_view name);

/// Percent-escapes `%` and every byte for which `plain` is false; injective.
std::string percent_escape(std::string_view text, const std::function<bool(unsigned char)>& plain);
/// Undoes percent_escape(); text that it cannot have made is returned as it is.
std::string percent_unescape(std::string_view text);

/// The length of the UTF-8 sequence at `at`, 0 if it is none (Unicode 15, table 3-7: neither
/// overlong forms nor surrogates).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// 64 lower-case hexadecimal digits, for keys too long for their store.
std::string sha256_hex(std::string_view text);

}  // namespace dlock::inline v0

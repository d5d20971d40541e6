// SPDX-License-Identifier: Apache-2.0
//
// The format of a record that only dlock reads. The record begins with a stamp and a number: `v=1`,
// `dlock-run1`, `dlock/1`. A program refuses a record of a newer format and does not interpret it.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <string>
#include <string_view>

namespace dlock::inline v0 {

/// Returns the number after the stamp. 0: the record does not begin with the stamp and a number.
unsigned format_of(std::string_view record, std::string_view stamp) noexcept;

/// Returns `WHAT has format 2; this program reads format 1; upgrade it` if the record has a newer
/// format than `known`. Returns an empty text for all other records.
std::string newer_format(std::string_view what, std::string_view record, std::string_view stamp,
                         unsigned known);

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// What a backend says of options that it cannot use together, or at all.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <string>
#include <string_view>

#include "dlock/spi/options.hpp"

namespace dlock::inline v0 {

/// Throws LockError with `config_invalid`, the store's name and `text`, which says what to write
/// instead; before it the place where the user wrote the option, if it was the user.
[[noreturn]] void refuse_option(const StoreOptions& options, std::string_view option,
                                std::string text);

}  // namespace dlock::inline v0

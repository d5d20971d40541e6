// SPDX-License-Identifier: Apache-2.0
//
// From a backend's own error codes to the portable ones.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dlock/error.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::inline v0 {

/// Returns the portable condition of a code; `protocol` if the code has none.
errc portable(const error_code& ec) noexcept;

/// Returns the failure for an exception in the library's work: `unavailable` for want of threads or
/// descriptors, else `protocol`. Ends the process for a std::bad_alloc (out_of_memory.hpp).
Failure failure_of(const std::exception& error);

/// Returns the system's text for an errno value; for a limit that was met also the limit's name.
std::string system_text(int error_number);

inline Failure make_failure(errc error, std::string text) {
  return {make_error_code(error), std::move(text)};
}

/// Returns the failure of an adoption whose grant is gone. `holder`: the present holder's token; 0:
/// it is not known; empty: no client holds the lock.
Failure not_adoptable(std::optional<std::uint64_t> holder, std::uint64_t exported);

/// Returns the failure of a claim whose limit is not the store's: names both, and the remedy.
Failure wrong_limit(std::string_view semaphore, std::uint32_t asked, std::uint32_t stored);
/// Returns the failure of a claim without a limit, where the store has none either.
Failure unknown_semaphore(std::string_view semaphore);
/// Returns the failure of a claim for more permits than the limit: it would wait without an end.
Failure too_many_permits(std::string_view semaphore, std::uint32_t permits, std::uint32_t limit);

/// Returns the failure of an eviction without `at_once` where the holder would not notice the mark.
Failure unaware_holder();

}  // namespace dlock::inline v0

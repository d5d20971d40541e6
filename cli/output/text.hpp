// SPDX-License-Identifier: Apache-2.0
//
// The same answers for people.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/schedule.hpp"

namespace dlock::cli {

/// Why it failed: lock, store where it has a name, what, and the cause.
std::string explanation(const error_code& error, const Diagnostics& details);

/// Whole seconds, where there are seconds: `3m20s`, `740ms`.
std::string rounded(std::chrono::milliseconds duration);

/// `broken by dlock (pid 7) on host at 2026-01-02 03:04:05 UTC: reason`.
std::string break_text(const Break& mark);

/// `./report.sh (pid 4711) on web1`; not yet printable.
std::string who(const Owner& owner);
/// Of a lock that is held.
std::string holder_words(const LockStatus& status);

/// Several lines, without the last newline.
std::string to_text(const LockStatus& status, const std::optional<RunRecord>& last_run);
/// A table.
std::string to_text(const std::vector<LockStatus>& locks,
                    const std::vector<SemaphoreStatus>& semaphores);
std::string to_text(const std::vector<StoreFinding>& findings);

}  // namespace dlock::cli

// SPDX-License-Identifier: Apache-2.0
//
// The `retry` setting: one of six policies under Curator's names, with its parameters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/config/parsed.hpp"
#include "core/config/settings.hpp"
#include "dlock/config.hpp"

namespace dlock::core {

/// `forever`, `n-times`, ...; also Curator's class names, in any case, with `-`, `_` or neither.
std::optional<RetryPolicy::Kind> retry_kind(std::string_view name);

/// The name to write: `n-times`.
std::string_view retry_name(RetryPolicy::Kind kind);

/// Whether the policy has that parameter.
bool retry_takes(RetryPolicy::Kind kind, std::string_view parameter);

/// The keys below `retry.`: policy, base, max, times, elapsed, interval.
std::span<const std::string_view> retry_keys();

/// From the settings `retry` and `retry.*`; the defaults if there are none. On error `culprit` is
/// the setting to point at.
Parsed<RetryPolicy> parse_retry(std::span<const Setting> settings, const Setting*& culprit);

}  // namespace dlock::core

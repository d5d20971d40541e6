// SPDX-License-Identifier: Apache-2.0
#include "core/config/retry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "dlock/duration.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

using PolicyKind = RetryPolicy::Kind;

struct Policy {
  PolicyKind kind;
  std::string_view name;
  std::string_view folded;         ///< Curator's class name, folded by fold()
  std::string_view keys;           ///< that it accepts
  std::string_view required = {};  ///< that it cannot do without
};

constexpr std::array<Policy, 6> kPolicies{{
    {PolicyKind::forever, "forever", "retryforever", "interval"},
    {PolicyKind::n_times, "n-times", "retryntimes", "times interval", "times"},
    {PolicyKind::one_time, "one-time", "retryonetime", "interval"},
    {PolicyKind::until_elapsed, "until-elapsed", "retryuntilelapsed", "elapsed interval",
     "elapsed"},
    {PolicyKind::exponential, "exponential", "exponentialbackoffretry", "base max times"},
    {PolicyKind::bounded_exponential, "bounded-exponential", "boundedexponentialbackoffretry",
     "base max times"},
}};

constexpr std::array<std::string_view, 6> kNames{
    "forever", "n-times", "one-time", "until-elapsed", "exponential", "bounded-exponential"};
constexpr std::array<std::string_view, 6> kRetryKeys{"policy", "base",    "max",
                                                     "times",  "elapsed", "interval"};

constexpr std::string_view kPrefix = "retry.";

std::string fold(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

const Policy& policy_of(PolicyKind kind) {
  for (const Policy& policy : kPolicies) {
    if (policy.kind == kind) return policy;
  }
  return kPolicies[4];
}

bool has_word(std::string_view words, std::string_view word) {
  const std::string padded = fmt::format(" {} ", words);
  return padded.find(fmt::format(" {} ", word)) != std::string::npos;
}

std::string apply(std::string_view key, std::string_view value, RetryPolicy& policy) {
  if (key == "times") {
    int times = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, times);
    if (error != std::errc() || stop != end || times < 0) {
      return fmt::format("'{}' is not a number of tries; write 0 or more", value);
    }
    policy.times = times;
    return {};
  }
  const auto duration = parse_duration(value);
  if (!duration) return fmt::format("'{}': {}", value, duration.error);
  if (duration.value->count() <= 0) return "'0': write 1ms or more";
  if (key == "max") {
    policy.max = *duration.value;
  } else if (key == "elapsed") {
    policy.elapsed = *duration.value;
  } else {
    policy.base = *duration.value;
  }
  return {};
}

}  // namespace

std::optional<PolicyKind> retry_kind(std::string_view name) {
  const std::string folded = fold(name);
  for (const Policy& policy : kPolicies) {
    const std::string ours = fold(policy.name);
    if (folded == ours || folded == policy.folded || folded == ours + "backoff" ||
        folded == "retry" + ours || folded == ours + "retry") {
      return policy.kind;
    }
  }
  return std::nullopt;
}

std::string_view retry_name(PolicyKind kind) { return policy_of(kind).name; }

bool retry_takes(PolicyKind kind, std::string_view parameter) {
  return has_word(policy_of(kind).keys, parameter);
}

std::span<const std::string_view> retry_keys() { return kRetryKeys; }

Parsed<RetryPolicy> parse_retry(std::span<const Setting> settings, const Setting*& culprit) {
  RetryPolicy result;
  const Setting* policy_setting = nullptr;
  for (const Setting& setting : settings) {
    if (setting.key != "retry" && setting.key != "retry.policy") continue;
    culprit = &setting;
    if (policy_setting != nullptr) return {{}, "retry: the policy is named twice; name it once"};
    policy_setting = &setting;
    const auto kind = retry_kind(setting.value);
    if (!kind) {
      return {{},
              fmt::format("{}: '{}' is not a retry policy; {}", setting.key, setting.value,
                          suggestion(setting.value, kNames))};
    }
    result.kind = *kind;
  }

  const Policy& policy = policy_of(result.kind);
  std::vector<std::string_view> given;
  for (const Setting& setting : settings) {
    const std::string_view key = setting.key;
    if (key.substr(0, kPrefix.size()) != kPrefix || key == "retry.policy") continue;
    culprit = &setting;
    const std::string_view parameter = key.substr(kPrefix.size());
    if (!has_word(policy.keys, parameter)) {
      const bool known = parameter == "policy" || nearest_word(parameter, kRetryKeys) == parameter;
      return {{},
              known ? fmt::format("{}: the policy '{}' has no such parameter; it takes: {}", key,
                                  policy.name, policy.keys)
                    : fmt::format("{}: unknown key; {}", key, suggestion(parameter, kRetryKeys))};
    }
    if (auto error = apply(parameter, setting.value, result); !error.empty()) {
      return {{}, fmt::format("{}: {}", key, error)};
    }
    given.push_back(parameter);
  }

  if (!policy.required.empty() &&
      std::find(given.begin(), given.end(), policy.required) == given.end()) {
    culprit = policy_setting;
    return {{},
            fmt::format("retry: the policy '{0}' needs '{1}'; write for example "
                        "retry: {{ policy: {0}, {1}: {2} }}",
                        policy.name, policy.required, policy.required == "times" ? "5" : "30s")};
  }
  if (result.max < result.base && has_word(policy.keys, "max")) {
    return {{},
            fmt::format("retry: max {} is below base {}; write a larger max",
                        format_duration(result.max), format_duration(result.base))};
  }
  return {result, {}};
}

}  // namespace dlock::core

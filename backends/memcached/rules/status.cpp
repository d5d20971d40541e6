// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/status.hpp"

#include <algorithm>
#include <charconv>

#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::memcached {
namespace {

/// The age since a time that another client wrote: it may be any number.
std::chrono::milliseconds age_of(std::int64_t since_ms, std::int64_t now_ms) {
  return std::chrono::milliseconds(now_ms - std::clamp<std::int64_t>(since_ms, 0, now_ms));
}

}  // namespace

std::optional<std::uint64_t> read_counter(std::string_view data) {
  // A counter that has shrunk is padded with spaces.
  std::uint64_t value = 0;
  const auto* end = data.data() + data.size();
  const auto [stopped, error] = std::from_chars(data.data(), end, value);
  if (error != std::errc() || stopped == data.data()) return std::nullopt;
  return value;
}

std::string newer_counter(std::string_view key, std::string_view data) {
  return newer_format(key, data, "v=", 1);
}

LockStatus describe(const std::string& name, const Seen& seen, std::int64_t now_ms) {
  using std::chrono::milliseconds;
  LockStatus status;
  status.name = name;
  status.held = seen.value.has_value();
  if (!status.held) return status;
  status.token = seen.counter;
  const auto value = read_value(*seen.value);
  if (!value) {
    status.owner = Owner{};
    status.notes.emplace_back("held by a client of another make");
    return status;
  }
  status.owner = value->owner;
  status.broken = value->broken;
  status.held_for = age_of(value->since_ms, now_ms);
  const auto lease = std::clamp(value->lease, milliseconds(0), kLongestLease);
  status.remaining = std::max(lease - age_of(value->renewed_ms, now_ms), milliseconds(0));
  status.notes.emplace_back("times are by the holder's wall clock");
  return status;
}

}  // namespace dlock::memcached

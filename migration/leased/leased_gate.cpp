// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/fsm/lease_fsm.hpp"
#include "dlock/sequencer.hpp"
#include "migration/fields.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

constexpr std::string_view kLeasedStamp = "dlock-leased";
constexpr unsigned kLeasedFormat = 1;
constexpr std::size_t kLongestLeased = 512;
constexpr std::string_view kCeilingStamp = "dlock-ceiling";
constexpr unsigned kCeilingFormat = 1;
constexpr std::uint64_t kMostVersions = 999'999'999;

constexpr LeasedState kLeasedStates[] = {LeasedState::source, LeasedState::source_then_target,
                                         LeasedState::target, LeasedState::target_then_source,
                                         LeasedState::final_, LeasedState::ended};

/// Where tokens are microseconds of a clock, the ceiling is raised once in 19 hours.
constexpr std::uint64_t kCeilingStep = std::uint64_t{1} << 36U;
/// Clocks that a token may come from are at most that far ahead of this process's clock.
constexpr std::uint64_t kClockLead = std::uint64_t{3'600} * 1'000'000;

LeasedState parse_leased_state(Fields& fields) {
  const auto word = fields.word("state");
  for (const auto state : kLeasedStates) {
    if (word == to_string(state)) return state;
  }
  fields.fail("its state is none of S_ALONE, S_THEN_T, T_ALONE, T_THEN_S, FINAL, ENDED");
  return LeasedState::source;
}

// One half is for the reader's clock, the other half for the waiter's clock.
Duration reading_margin(std::chrono::milliseconds lease) {
  return std::max<Duration>(default_drift_margin(lease), lease / 20);
}

std::uint64_t ceiling_above(std::uint64_t token) {
  return token < kTokenEnd - 1 - kCeilingStep ? token + kCeilingStep : kTokenEnd - 1;
}

}  // namespace

const char* to_string(LeasedState state) noexcept {
  switch (state) {
    case LeasedState::source:
      return "S_ALONE";
    case LeasedState::source_then_target:
      return "S_THEN_T";
    case LeasedState::target:
      return "T_ALONE";
    case LeasedState::target_then_source:
      return "T_THEN_S";
    case LeasedState::final_:
      return "FINAL";
    case LeasedState::ended:
      return "ENDED";
  }
  return "unknown";
}

std::string leased_key(std::string_view plan) { return fmt::format("leased/{}", plan); }

std::string to_text(const LeasedGate& gate) {
  return fmt::format(
      "{}{} {} ver={} from={} to={} floor={} ceiling={} lease_ms={} plan={} id={} born={} "
      "since_ms={}",
      kLeasedStamp, kLeasedFormat, to_string(gate.state), gate.version, gate.from, gate.to,
      gate.floor, gate.ceiling, gate.lease.count(), gate.plan, gate.plan_id, gate.born,
      gate.since_ms);
}

std::optional<LeasedGate> parse_leased_gate(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestLeased + 1), ' ');
  if (text.size() > kLongestLeased) fields.fail("it is too long for a gate");
  fields.format(kLeasedStamp, kLeasedFormat);
  LeasedGate gate;
  gate.state = parse_leased_state(fields);
  gate.version = fields.number("ver", kMostVersions);
  gate.from = fields.name("from");
  gate.to = fields.name("to");
  gate.floor = fields.number("floor", kTokenEnd - 1);
  gate.ceiling = fields.number("ceiling", kTokenEnd - 1);
  const auto longest = static_cast<std::uint64_t>(kLongestGateLease.count());
  gate.lease = std::chrono::milliseconds(fields.number("lease_ms", longest));
  if (fields.good() && gate.lease < kShortestGateLease) fields.fail("its lease is too short");
  gate.plan = fields.name("plan");
  gate.plan_id = fields.value("id");
  if (fields.good() && !is_plan_id(gate.plan_id)) fields.fail("its id is not one of a plan");
  gate.born = fields.value("born");
  if (fields.good() && !is_plan_id(gate.born)) fields.fail("its born is not 16 digits");
  gate.since_ms = static_cast<std::int64_t>(fields.number("since_ms", kMostMilliseconds));
  fields.end();
  if (fields.good()) return gate;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

std::string ceiling_key(std::string_view plan) { return fmt::format("ceiling/{}", plan); }

std::string ceiling_text(std::uint64_t ceiling) {
  return fmt::format("{}{} {}", kCeilingStamp, kCeilingFormat, ceiling);
}

std::optional<std::uint64_t> parse_ceiling(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestLeased), ' ');
  fields.format(kCeilingStamp, kCeilingFormat);
  const auto word = fields.word("ceiling");
  std::uint64_t ceiling = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), ceiling);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || ceiling >= kTokenEnd) {
    fields.fail("its ceiling is not a token");
  }
  fields.end();
  if (fields.good()) return ceiling;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

TimePoint counts_until(TimePoint sent, std::chrono::milliseconds lease) {
  return sent + lease - reading_margin(lease);
}

Duration turn_wait(std::chrono::milliseconds lease) { return lease + reading_margin(lease); }

std::optional<LeasedGate> turned_to(const LeasedGate& gate, LeasedState state,
                                    std::int64_t wall_clock_ms) {
  auto next = gate;
  next.state = state;
  next.version += 1;
  next.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  if (!is_both(gate.state) || is_both(state)) return next;
  // An immediate return: a client that reads "both" may still be granted both, so no lock was
  // acquired in the other store alone.
  const bool is_return = is_source_first(gate.state) == is_source_first(state);
  if (is_return) return next;
  const auto floor = floor_above(gate.ceiling, wall_clock_ms);
  if (!floor) return std::nullopt;
  next.floor = *floor;
  next.ceiling = ceiling_above(*floor);
  return next;
}

LeasedGate with_room_for(const LeasedGate& gate, std::uint64_t token) {
  auto next = gate;
  if (token > next.ceiling) next.ceiling = ceiling_above(token);
  return next;
}

std::optional<std::uint64_t> floor_above(std::uint64_t highest, std::int64_t wall_clock_ms) {
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(wall_clock_ms, 0));
  const auto floor = std::max(highest, ms * 1'000 + kClockLead);
  if (floor >= kTokenEnd - 2) return std::nullopt;
  return floor;
}

}  // namespace dlock::core::migration

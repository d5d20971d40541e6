// SPDX-License-Identifier: Apache-2.0
#include "migration/record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/sequencer.hpp"
#include "migration/fields.hpp"

namespace dlock::core::migration {
namespace {

constexpr std::string_view kRecordStamp = "dlock-move";
constexpr unsigned kRecordFormat = 1;
constexpr std::size_t kLongestRecordText = 512;
constexpr std::uint64_t kMostCounter = 999'999'999;

MoveState parse_state(Fields& fields) {
  const auto word = fields.word("state");
  for (const auto state : {MoveState::moved, MoveState::closing, MoveState::final_}) {
    if (word == to_string(state)) return state;
  }
  fields.fail("its state is none of MOVED, CLOSING, FINAL");
  return MoveState::closing;
}

Generation parse_generation(Fields& fields) {
  const auto text = fields.value("gen");
  const auto dot = std::min(text.find('.'), text.size());
  Generation gen;
  gen.flip = fields.number_in(text.substr(0, dot), "gen", kTokenEnd - 1);
  gen.counter = fields.number_in(text.substr(std::min(dot + 1, text.size())), "gen", kMostCounter);
  return gen;
}

}  // namespace

const char* to_string(MoveState state) noexcept {
  switch (state) {
    case MoveState::moved:
      return "MOVED";
    case MoveState::closing:
      return "CLOSING";
    case MoveState::final_:
      return "FINAL";
  }
  return "unknown";
}

bool is_plan_id(std::string_view text) noexcept {
  return text.size() == 16 && std::all_of(text.begin(), text.end(), is_lower_hex);
}

std::string to_text(const Record& record) {
  return fmt::format(
      "{}{} {} gen={}.{} target={} floor={} max_lease_ms={} plan={} id={} since_ms={}",
      kRecordStamp, kRecordFormat, to_string(record.state), record.gen.flip, record.gen.counter,
      record.target, record.floor, record.max_lease.count(), record.plan, record.plan_id,
      record.since_ms);
}

std::optional<Record> parse_record(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestRecordText + 1), ' ');
  if (text.size() > kLongestRecordText) fields.fail("it is too long for a record");
  fields.format(kRecordStamp, kRecordFormat);
  Record record;
  record.state = parse_state(fields);
  record.gen = parse_generation(fields);
  record.target = fields.name("target");
  record.floor = fields.number("floor", kTokenEnd - 1);
  record.max_lease = std::chrono::milliseconds(fields.number("max_lease_ms", kMostMilliseconds));
  record.plan = fields.name("plan");
  record.plan_id = fields.value("id");
  if (fields.good() && !is_plan_id(record.plan_id)) fields.fail("its id is not one of a plan");
  record.since_ms = static_cast<std::int64_t>(fields.number("since_ms", kMostMilliseconds));
  fields.end();
  if (fields.good()) return record;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

Record next_record(const Record& record, MoveState state, std::int64_t wall_clock_ms) {
  Record next = record;
  next.state = state;
  next.gen.counter += 1;
  next.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return next;
}

bool is_closed(const Record& in_target, std::string_view source) noexcept {
  return in_target.state != MoveState::closing && in_target.target == source;
}

std::optional<std::uint64_t> blind_floor(std::uint64_t floor, std::int64_t wall_clock_ms) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 48U;
  // Room for the grants to come.
  constexpr std::uint64_t kMost = kTokenEnd - kStep;
  const auto clock_us = static_cast<std::uint64_t>(std::max<std::int64_t>(wall_clock_ms, 0)) * 1000;
  const auto raised = std::max(floor, clock_us) + kStep;
  if (raised > kMost) return std::nullopt;
  return raised;
}

}  // namespace dlock::core::migration

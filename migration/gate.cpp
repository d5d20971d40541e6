// SPDX-License-Identifier: Apache-2.0
#include "migration/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "dlock/sequencer.hpp"
#include "migration/fields.hpp"

namespace dlock::core::migration {
namespace {

constexpr std::string_view kGateStamp = "dlock-gate";
constexpr unsigned kGateFormat = 1;
constexpr std::size_t kLongestGate = 512;
constexpr std::uint64_t kMostTurns = 999'999'999;

constexpr GateState kStates[] = {GateState::open, GateState::turned, GateState::final_,
                                 GateState::ended};

GateState parse_gate_state(Fields& fields) {
  const auto word = fields.word("state");
  for (const auto state : kStates) {
    if (word == to_string(state)) return state;
  }
  fields.fail("its state is none of OPEN, TURNED, FINAL, ENDED");
  return GateState::open;
}

/// FNV-1a.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2'166'136'261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  return hash;
}

}  // namespace

const char* to_string(GateState state) noexcept {
  switch (state) {
    case GateState::open:
      return "OPEN";
    case GateState::turned:
      return "TURNED";
    case GateState::final_:
      return "FINAL";
    case GateState::ended:
      return "ENDED";
  }
  return "unknown";
}

std::string gate_key(std::string_view plan) { return fmt::format("gate/{}", plan); }

std::string to_text(const Gate& gate) {
  return fmt::format("{}{} {} ver={} target={} floor={} max_lease_ms={} plan={} id={} since_ms={}",
                     kGateStamp, kGateFormat, to_string(gate.state), gate.version, gate.target,
                     gate.floor, gate.max_lease.count(), gate.plan, gate.plan_id, gate.since_ms);
}

std::optional<Gate> parse_gate(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestGate + 1), ' ');
  if (text.size() > kLongestGate) fields.fail("it is too long for a gate");
  fields.format(kGateStamp, kGateFormat);
  Gate gate;
  gate.state = parse_gate_state(fields);
  gate.version = fields.number("ver", kMostTurns);
  gate.target = fields.name("target");
  gate.floor = fields.number("floor", kTokenEnd - 1);
  gate.max_lease = std::chrono::milliseconds(fields.number("max_lease_ms", kMostMilliseconds));
  gate.plan = fields.name("plan");
  gate.plan_id = fields.value("id");
  if (fields.good() && !is_plan_id(gate.plan_id)) fields.fail("its id is not one of a plan");
  gate.since_ms = static_cast<std::int64_t>(fields.number("since_ms", kMostMilliseconds));
  fields.end();
  if (fields.good()) return gate;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

Gate opened_gate(const Plan& plan, const std::optional<Gate>& before, std::int64_t wall_clock_ms) {
  Gate gate;
  gate.version = before ? before->version + 1 : 1;
  gate.target = plan.to;
  gate.max_lease = plan.max_lease;
  gate.plan = plan.name;
  gate.plan_id = plan.id;
  gate.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return gate;
}

Gate turned_to(const Gate& gate, GateState state, std::int64_t wall_clock_ms) {
  Gate next = gate;
  next.state = state;
  next.version += 1;
  next.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return next;
}

Record moved_record(const Gate& gate, std::uint64_t token, std::int64_t wall_clock_ms) {
  Record record;
  record.state = MoveState::moved;
  record.gen = {token, 1};
  record.target = gate.target;
  record.floor = token;
  record.max_lease = gate.max_lease;
  record.plan = gate.plan;
  record.plan_id = gate.plan_id;
  record.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return record;
}

Record final_record(const Gate& gate) {
  auto record = moved_record(gate, gate.floor, gate.since_ms);
  record.state = MoveState::final_;
  return record;
}

GatePtr check_of(std::string_view plan, const std::string& text, const std::optional<Gate>& gate,
                 std::int64_t wall_clock_ms) {
  auto check = std::make_shared<GateCheck>();
  check->key = gate_key(plan);
  check->text = text;
  if (gate && gate->state == GateState::turned) {
    check->seal = to_text(moved_record(*gate, 0, wall_clock_ms));
    for (const std::string_view field : {"gen=0.", "floor=0 "}) {
      const auto at = check->seal.find(field) + field.find('0');
      check->seal.replace(at, 1, kTokenPlace);
    }
  }
  return check;
}

bool GateBelief::learn(const std::string& text, std::string& why) {
  if (is(GateState::final_)) return true;
  if (text.empty()) {
    text_.clear();
    gate_.reset();
    return true;
  }
  auto gate = parse_gate(text, &why);
  if (gate && gate->plan != plan_) {
    why = fmt::format("it is of plan '{}'", gate->plan);
    return false;
  }
  if (!gate) return false;
  text_ = text;
  gate_ = std::move(gate);
  return true;
}

bool GateBelief::is_due(TimePoint now) {
  if (is(GateState::final_) || (looked_at_ && now < *looked_at_ + kGateAge)) return false;
  looked_at_ = now;
  return true;
}

std::string participant_mark(std::string_view plan) {
  return fmt::format("{:08x}-9a7e", hash_of(plan));
}

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
#include "cli/output/migrate_leased_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "cli/output/migrate_output.hpp"
#include "cli/output/plan_values.hpp"
#include "dlock/duration.hpp"

namespace dlock::cli {
namespace {

namespace json = boost::json;
namespace moves = core::migration;
using moves::LeasedGate;
using moves::LeasedState;
using moves::Plan;
using moves::Stranger;

json::array leased_strangers_of(const std::vector<Stranger>& strangers) {
  json::array array;
  for (const auto& stranger : strangers) {
    array.emplace_back(json::object{{"store", stranger.store},
                                    {"name", stranger.lock},
                                    {"holds", !stranger.waits},
                                    {"host", stranger.owner.host},
                                    {"pid", stranger.owner.pid},
                                    {"app", stranger.owner.app},
                                    {"id", stranger.owner.id}});
  }
  return array;
}

json::object about_leased(const Plan& plan) {
  return {{"plan", plan.name},
          {"from", plan.from},
          {"to", plan.to},
          {"gate_store", plan.gate},
          {"gate_lease_ms", plan.lease.count()},
          {"max_lease_ms", plan.max_lease.count()}};
}

std::int64_t gate_age_ms(const LeasedGate& gate, std::int64_t wall_clock_ms) {
  return std::max<std::int64_t>(wall_clock_ms - gate.since_ms, 0);
}

json::value gate_value(const std::optional<LeasedGate>& gate, std::int64_t wall_clock_ms) {
  if (!gate) return nullptr;
  return json::object{{"state", to_string(gate->state)},
                      {"ver", gate->version},
                      {"floor", gate->floor},
                      {"ceiling", gate->ceiling},
                      {"since_ms", gate_age_ms(*gate, wall_clock_ms)}};
}

std::string leased_header(const Plan& plan) {
  return fmt::format("plan {}: from '{}' to '{}', gate in '{}'", plan.name, plan.from, plan.to,
                     plan.gate);
}

std::string stranger_lines(const std::vector<Stranger>& strangers) {
  std::string text;
  for (const auto& stranger : strangers) text += "\n  seen now: " + moves::describe(stranger);
  return text;
}

std::string configuration_of(const Plan& plan, const LeasedGate& gate) {
  const auto& match = plan.patterns.front();
  const bool is_over = gate.state == LeasedState::final_ || gate.state == LeasedState::ended;
  const auto& home = gate.state == LeasedState::final_ ? plan.to : plan.from;
  return fmt::format("\nconfiguration of every program: `{}`",
                     is_over ? moves::store_line(match, home) : moves::route_line(match, plan));
}

}  // namespace

std::string to_json(const moves::LeasedPlanReport& report) {
  auto object = about_leased(report.plan);
  object["patterns"] = array_of(report.plan.patterns);
  object["objections"] = array_of(report.objections);
  object["remarks"] = array_of(report.remarks);
  return json::serialize(object);
}

std::string to_text(const moves::LeasedPlanReport& report) {
  const auto& plan = report.plan;
  std::string text;
  for (const auto& objection : report.objections) text += fmt::format("refused: {}\n", objection);
  text += leased_header(plan);
  text += fmt::format("\nprograms rely on a reading of the gate for {} at most",
                      format_duration(plan.lease));
  for (const auto& remark : report.remarks) text += "\nnote: " + remark;
  for (const auto& pattern : plan.patterns) text += "\n  " + pattern;
  if (report.objections.empty()) text += "\nnext: dlock migrate start " + plan.name;
  return text;
}

std::string to_json(const moves::LeasedStatus& status, std::int64_t wall_clock_ms) {
  auto object = about_leased(status.plan);
  object["gate"] = gate_value(status.gate, wall_clock_ms);
  object["next"] = status.next;
  object["alarms"] = array_of(status.alarms);
  object["remarks"] = array_of(status.remarks);
  object["strangers"] = leased_strangers_of(status.strangers);
  object["patterns"] = array_of(status.plan.patterns);
  return json::serialize(object);
}

std::string to_text(const moves::LeasedStatus& status, std::int64_t wall_clock_ms) {
  std::string text = leased_header(status.plan);
  for (const auto& alarm : status.alarms) text += "\nALARM: " + alarm;
  if (status.gate) {
    const auto& gate = *status.gate;
    text += fmt::format("\n{} for {}: {}", to_string(gate.state),
                        age_text(gate_age_ms(gate, wall_clock_ms)), moves::places_of(gate));
  }
  for (const auto& remark : status.remarks) text += "\nnote: " + remark;
  text += stranger_lines(status.strangers);
  if (status.gate) text += configuration_of(status.plan, *status.gate);
  return text + "\nnext: " + status.next;
}

std::string to_json(const moves::LeasedStepReport& step, std::int64_t wall_clock_ms) {
  auto object = about_leased(step.plan);
  object["outcome"] = outcome_of(step.report.verdict);
  object["changed"] = step.report.changed;
  object["text"] = step.report.text;
  object["gate"] = gate_value(step.report.gate, wall_clock_ms);
  object["strangers"] = leased_strangers_of(step.report.strangers);
  object["finished"] = step.finished;
  object["withdrawn"] = step.withdrawn;
  return json::serialize(object);
}

std::string to_text(const moves::LeasedStepReport& step) {
  const auto& report = step.report;
  std::string text = step.plan.name + ": " + report.text;
  text += stranger_lines(report.strangers);
  if (step.withdrawn) text += fmt::format("\nplan {} is withdrawn", step.plan.name);
  if (step.finished) {
    text += fmt::format("\nplan {} is finished: its locks are at home in '{}'", step.plan.name,
                        step.plan.to);
  }
  const bool is_done = report.verdict == moves::Verdict::done && report.gate;
  return is_done ? text + configuration_of(step.plan, *report.gate) : text;
}

}  // namespace dlock::cli

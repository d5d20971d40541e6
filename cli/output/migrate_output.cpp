// SPDX-License-Identifier: Apache-2.0
#include "cli/output/migrate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "cli/output/plan_values.hpp"
#include "dlock/duration.hpp"

namespace dlock::cli {
namespace {

namespace json = boost::json;
using core::migration::MoveState;
using core::migration::NameStatus;
using core::migration::PlanStatus;
using core::migration::Verdict;

json::object object_of(const Owner& owner, const std::string& store) {
  return {{"store", store},
          {"host", owner.host},
          {"pid", owner.pid},
          {"pid_namespace",
           owner.pid_namespace == 0 ? json::value(nullptr) : json::value(owner.pid_namespace)},
          {"app", owner.app},
          {"id", owner.id}};
}

json::value gen_of(const std::optional<core::migration::Record>& record) {
  if (!record) return nullptr;
  json::value text(fmt::format("{}.{}", record->gen.flip, record->gen.counter));
  return text;
}

/// Returns the programs that wait behind the record in the source. They do not take part.
std::vector<Owner> laggards_of(const NameStatus& name) {
  if (!name.record || !name.in_source) return {};
  return name.in_source->waiting;
}

json::value holder_of(const NameStatus& name, const core::migration::Plan& plan) {
  for (const auto& [status, store] :
       {std::pair(&name.in_source, &plan.from), std::pair(&name.in_target, &plan.to)}) {
    if (!*status || !(*status)->held) continue;
    return object_of((*status)->owner.value_or(Owner{}), *store);
  }
  return nullptr;
}

json::object object_of(const NameStatus& name, const PlanStatus& status, std::int64_t now_ms) {
  json::object object{{"name", name.name}};
  object["state"] = core::migration::state_text(name.record);
  object["gen"] = gen_of(name.record);
  object["since_ms"] = name.record
                           ? json::value(std::max<std::int64_t>(now_ms - name.record->since_ms, 0))
                           : json::value(nullptr);
  object["holder"] = holder_of(name, status.plan);
  json::array laggards;
  for (const auto& owner : laggards_of(name)) {
    laggards.emplace_back(object_of(owner, status.plan.from));
  }
  object["laggards"] = std::move(laggards);
  object["alarms"] = array_of(name.alarms);
  return object;
}

json::object about(const core::migration::Plan& plan) {
  return {{"plan", plan.name},
          {"from", plan.from},
          {"to", plan.to},
          {"patterns", array_of(plan.patterns)},
          {"max_lease_ms", plan.max_lease.count()}};
}

json::value object_of(const std::optional<core::migration::Gate>& gate) {
  if (!gate) return nullptr;
  return json::object{{"state", core::migration::to_string(gate->state)},
                      {"version", gate->version},
                      {"floor", gate->floor}};
}

json::array strangers_of(const std::vector<core::migration::Stranger>& strangers) {
  json::array array;
  for (const auto& stranger : strangers) {
    auto object = object_of(stranger.owner, stranger.store);
    object["name"] = stranger.lock;
    object["holds"] = !stranger.waits;
    array.emplace_back(std::move(object));
  }
  return array;
}

std::string lines_of(const std::vector<core::migration::Stranger>& strangers) {
  std::string text;
  for (const auto& stranger : strangers) {
    text += fmt::format("\n  {} '{}' in '{}' and does not take part: {}",
                        stranger.waits ? "waits for" : "holds", stranger.lock, stranger.store,
                        core::migration::describe(stranger.owner));
  }
  return text;
}

std::string patterns_of(const core::migration::Plan& plan) {
  std::vector<std::string> quoted;
  for (const auto& pattern : plan.patterns) quoted.push_back(fmt::format("'{}'", pattern));
  return fmt::format("{}", fmt::join(quoted, " and "));
}

/// Where locks go whose names are new.
std::string gate_line(const core::migration::Gate& gate, const core::migration::Plan& plan) {
  using core::migration::GateState;
  const bool to_target = gate.state == GateState::turned || gate.state == GateState::final_;
  return fmt::format("locks of {} that are made later: in '{}'", patterns_of(plan),
                     to_target ? plan.to : plan.from);
}

std::string place_of(const NameStatus& name, const core::migration::Plan& plan) {
  if (!name.record) return fmt::format("in '{}'", plan.from);
  if (name.record->state == MoveState::moved) return fmt::format("moved to '{}'", plan.to);
  return fmt::format("on its way back to '{}'", plan.from);
}

std::string line_of(const NameStatus& name, const PlanStatus& status, std::int64_t now_ms) {
  const auto& plan = status.plan;
  std::string text = fmt::format("{}: {}", name.name, place_of(name, plan));
  if (name.record) {
    text +=
        fmt::format(" for {}", age_text(std::max<std::int64_t>(now_ms - name.record->since_ms, 0)));
  }
  for (const auto& [found, store] :
       {std::pair(&name.in_source, &plan.from), std::pair(&name.in_target, &plan.to)}) {
    if (!*found || !(*found)->held) continue;
    text += fmt::format(
        "; held in '{}' by {}", *store,
        (*found)->owner ? core::migration::describe(*(*found)->owner) : std::string("somebody"));
  }
  for (const auto& owner : laggards_of(name)) {
    text += fmt::format("\n  waits in '{}' and does not take part: {}", plan.from,
                        core::migration::describe(owner));
  }
  for (const auto& alarm : name.alarms) text += fmt::format("\n  ALARM: {}", alarm);
  return text;
}

}  // namespace

const char* outcome_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::done:
      return "done";
    case Verdict::waiting:
      return "waiting";
    case Verdict::refused:
      return "refused";
    case Verdict::unreachable:
      return "unreachable";
    case Verdict::stopped:
      break;
  }
  return "stopped";
}

std::string to_json(const core::migration::PlanReport& report) {
  auto object = about(report.plan);
  object["target_forgets"] = report.plan.lossy_target;
  object["names"] = array_of(report.names);
  object["strangers"] = strangers_of(report.strangers);
  object["objections"] = array_of(report.objections);
  object["started"] = report.started;
  return json::serialize(object);
}

std::string to_text(const core::migration::PlanReport& report) {
  const auto& plan = report.plan;
  std::string text;
  for (const auto& objection : report.objections) text += fmt::format("refused: {}\n", objection);
  text += fmt::format("plan {}: all locks of {} from '{}' to '{}'", plan.name, patterns_of(plan),
                      plan.from, plan.to);
  if (plan.leased_target) {
    text += fmt::format(", leases there {} at most", format_duration(plan.max_lease));
  }
  if (plan.lossy_target) {
    text += fmt::format("\n'{}' can forget locks: a rollback waits one lease more", plan.to);
  }
  if (report.started) {
    text += fmt::format("\nstarted; no lock has moved. Next: dlock migrate advance {} --all",
                        plan.name);
  }
  text += report.names.empty() ? std::string("\nnone is held there now")
                               : fmt::format("\nseen there now: {}", report.names.size());
  for (const auto& name : report.names) text += "\n  " + name;
  text += lines_of(report.strangers);
  return text;
}

std::string to_json(const PlanStatus& status, std::int64_t wall_clock_ms) {
  auto object = about(status.plan);
  object["finished"] = status.finished;
  object["gate"] = object_of(status.gate);
  object["next"] = status.next;
  object["alarms"] = array_of(status.alarms);
  json::array locks;
  for (const auto& name : status.names) {
    locks.emplace_back(object_of(name, status, wall_clock_ms));
  }
  object["locks"] = std::move(locks);
  return json::serialize(object);
}

std::string to_text(const PlanStatus& status, std::int64_t wall_clock_ms) {
  std::string text = fmt::format("plan {}: from '{}' to '{}'{}", status.plan.name, status.plan.from,
                                 status.plan.to, status.finished ? ", finished" : "");
  for (const auto& alarm : status.alarms) text += fmt::format("\nALARM: {}", alarm);
  if (status.gate) {
    text += fmt::format("\n{}, for {}", gate_line(*status.gate, status.plan),
                        age_text(std::max<std::int64_t>(wall_clock_ms - status.gate->since_ms, 0)));
  }
  for (const auto& name : status.names) text += "\n" + line_of(name, status, wall_clock_ms);
  if (!status.next.empty()) text += "\nnext: " + status.next;
  return text;
}

std::string to_json(const core::migration::StepsReport& report) {
  auto object = about(report.plan);
  object["finished"] = report.finished;
  object["withdrawn"] = report.withdrawn;
  object["gate"] = object_of(report.gate);
  object["strangers"] = strangers_of(report.strangers);
  json::array locks;
  for (const auto& step : report.steps) {
    json::object lock{{"name", step.name}};
    lock["outcome"] = outcome_of(step.verdict);
    lock["state"] = core::migration::state_text(step.record);
    lock["gen"] = gen_of(step.record);
    lock["changed"] = step.changed;
    lock["holder"] = step.holder.empty() ? json::value(nullptr) : json::value(step.holder);
    lock["text"] = step.text;
    locks.emplace_back(std::move(lock));
  }
  object["locks"] = std::move(locks);
  return json::serialize(object);
}

namespace {

std::string line_of(const core::migration::StepReport& step, const core::migration::Plan& plan) {
  if (step.name.empty()) return fmt::format("plan {}: {}", plan.name, step.text);
  NameStatus name;
  name.record = step.record;
  return fmt::format(
      "{}: {}", step.name,
      step.verdict == Verdict::done
          ? place_of(name, plan)
          : fmt::format("{} ({})", step.text, core::migration::state_text(step.record)));
}

/// A longer report prints only the locks that are not done.
constexpr std::size_t kMostLines = 50;

}  // namespace

std::string to_text(const core::migration::StepsReport& report) {
  std::vector<std::string> lines;
  std::size_t unnamed = 0;
  for (const auto& step : report.steps) {
    if (step.verdict == Verdict::done && report.steps.size() > kMostLines) {
      ++unnamed;
    } else {
      lines.push_back(line_of(step, report.plan));
    }
  }
  if (unnamed > 0) lines.push_back(fmt::format("{} others are done", unnamed));
  if (report.gate && !report.finished && !report.withdrawn) {
    lines.push_back(gate_line(*report.gate, report.plan));
  }
  if (report.finished) {
    lines.push_back(
        fmt::format("plan {0} is finished: its locks are at home in '{1}'\n"
                    "configuration: write `store: {1}` instead of `migrate`, program "
                    "by program",
                    report.plan.name, report.plan.to));
  }
  if (report.withdrawn) lines.push_back(fmt::format("plan {} is withdrawn", report.plan.name));
  return fmt::format("{}{}", fmt::join(lines, "\n"), lines_of(report.strangers));
}

}  // namespace dlock::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/output/migrate_dual_output.hpp"

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
using moves::Plan;
using moves::Program;
using moves::Stranger;
using moves::Verdict;
using moves::Window;

/// Of a phase, for people; --json has them all.
constexpr std::size_t kMostShown = 20;
/// In a report's sentence.
constexpr std::size_t kMostNamed = 3;

json::object object_of(const Program& program) {
  return {{"id", program.id},
          {"phase", program.phase},
          {"host", program.host},
          {"pid", program.pid == 0 ? json::value(nullptr) : json::value(program.pid)},
          {"app", program.app}};
}

json::array programs_of(const std::vector<Program>& programs) {
  json::array array;
  for (const auto& program : programs) array.emplace_back(object_of(program));
  return array;
}

json::array dual_strangers_of(const std::vector<Stranger>& strangers) {
  json::array array;
  for (const auto& stranger : strangers) {
    json::object object{{"store", stranger.store}, {"name", stranger.lock}};
    object["holds"] = !stranger.waits;
    object["host"] = stranger.owner.host;
    object["pid"] = stranger.owner.pid;
    object["app"] = stranger.owner.app;
    object["id"] = stranger.owner.id;
    array.emplace_back(std::move(object));
  }
  return array;
}

json::object about_dual(const Plan& plan) {
  return {{"plan", plan.name},
          {"mode", "dual"},
          {"from", plan.from},
          {"to", plan.to},
          {"max_lease_ms", plan.max_lease.count()},
          {"registration_ms", plan.registration.count()}};
}

std::int64_t age_ms(std::int64_t since_ms, std::int64_t now_ms) {
  return std::max<std::int64_t>(now_ms - since_ms, 0);
}

json::value value_of(const std::optional<Window>& window, const Plan& plan, std::int64_t now_ms) {
  if (!window) return nullptr;
  json::object object{{"store", plan.window}};
  object["lo"] = window->lo;
  object["hi"] = window->hi;
  object["ver"] = window->ver;
  object["floor"] = window->floor;
  object["since_ms"] = age_ms(window->since_ms, now_ms);
  object["programs"] = programs_of(window->programs);
  return object;
}

std::string header_of(const Plan& plan) {
  return fmt::format("plan {}: mode dual, from '{}' to '{}', window in '{}'", plan.name, plan.from,
                     plan.to, plan.window);
}

std::string what_it_locks(int phase, const Plan& plan) {
  if (phase == 0) return fmt::format("'{}'", plan.from);
  if (phase == 1) return fmt::format("'{}', then '{}'", plan.from, plan.to);
  return fmt::format("'{}'", plan.to);
}

std::string text_of(const std::vector<Program>& programs) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& program : programs) {
    if (++shown > kMostShown) {
      text += fmt::format("\n    and {} more; --json has all", programs.size() - kMostShown);
      break;
    }
    text += "\n    " + moves::describe(program);
  }
  return text;
}

std::string text_of(const Window& window, const Plan& plan) {
  std::string text;
  for (int phase = 0; phase <= moves::kLastPhase; ++phase) {
    std::vector<Program> there;
    std::copy_if(window.programs.begin(), window.programs.end(), std::back_inserter(there),
                 [&](const Program& program) { return program.phase == phase; });
    if (there.empty() && !window.admits(phase)) continue;
    text += fmt::format("\n  phase {} locks {}{}: {} registered", phase, what_it_locks(phase, plan),
                        window.admits(phase) ? "" : " and is closed, no other may come",
                        there.empty() ? std::string("nobody is") : std::to_string(there.size()));
    text += text_of(there);
  }
  return text;
}

std::string text_of(const std::vector<Stranger>& strangers) {
  std::string text;
  for (const auto& stranger : strangers) {
    text += fmt::format("\n  seen now: {}", moves::describe(stranger));
  }
  return text;
}

std::string scope_of(const Plan& plan) {
  std::string text;
  for (const auto& pattern : plan.patterns) text += "\n  " + pattern + " (a pattern)";
  for (const auto& name : plan.names) text += "\n  " + name;
  return text;
}

}  // namespace

std::string line_to_write(const Plan& plan, const Window& window) {
  const std::string match = plan.patterns.empty() ? "**" : plan.patterns.front();
  const auto line = [&](int phase) { return moves::route_line(match, plan, phase); };
  if (window.finished) {
    return fmt::format("write into every program: `- {{ match: \"{}\", store: {} }}`", match,
                       plan.to);
  }
  if (window.lo == window.hi) {
    return fmt::format("every program is to have `phase: {}`: `{}`", window.lo, line(window.lo));
  }
  return fmt::format(
      "forward, write `phase: {0}` instead of `phase: {1}` into every program and "
      "restart it: `{2}`; back, the other way round",
      window.hi, window.lo, line(window.hi));
}

std::string to_json(const moves::DualPlanReport& report) {
  auto object = about_dual(report.plan);
  object["window"] = report.plan.window;
  object["names"] = array_of(report.plan.names);
  object["patterns"] = array_of(report.plan.patterns);
  object["objections"] = array_of(report.objections);
  object["remarks"] = array_of(report.remarks);
  return json::serialize(object);
}

std::string to_text(const moves::DualPlanReport& report) {
  const auto& plan = report.plan;
  std::string text;
  for (const auto& objection : report.objections) text += fmt::format("refused: {}\n", objection);
  text += header_of(plan);
  text += fmt::format("\nleases {} at most; a program that has died counts for {} more",
                      format_duration(plan.max_lease), format_duration(plan.registration));
  for (const auto& remark : report.remarks) text += "\nnote: " + remark;
  text += scope_of(plan);
  if (report.objections.empty()) text += "\nnext: dlock migrate start " + plan.name;
  return text;
}

std::string to_json(const moves::DualStatus& status, std::int64_t wall_clock_ms) {
  auto object = about_dual(status.plan);
  object["finished"] = status.finished;
  object["next"] = status.next;
  object["alarms"] = array_of(status.alarms);
  object["window"] = value_of(status.window, status.plan, wall_clock_ms);
  object["laggards"] = programs_of(status.laggards);
  object["strangers"] = dual_strangers_of(status.strangers);
  object["names"] = array_of(status.plan.names);
  object["patterns"] = array_of(status.plan.patterns);
  return json::serialize(object);
}

std::string to_text(const moves::DualStatus& status, std::int64_t wall_clock_ms) {
  const auto& plan = status.plan;
  std::string text = header_of(plan) + (status.finished ? ", finished" : "");
  for (const auto& alarm : status.alarms) text += "\nALARM: " + alarm;
  if (status.window && !status.finished) {
    const auto& window = *status.window;
    text +=
        fmt::format("\nwindow: phase{} {} {} admitted, for {}", window.lo == window.hi ? "" : "s",
                    moves::phases_text(window.lo, window.hi), window.lo == window.hi ? "is" : "are",
                    age_text(age_ms(window.since_ms, wall_clock_ms)));
    text += text_of(window, plan);
  }
  text += text_of(status.strangers);
  if (status.window) text += "\nconfiguration: " + line_to_write(plan, *status.window);
  if (!status.next.empty()) text += "\nnext: " + status.next;
  return text;
}

std::string to_json(const moves::DualStepReport& step, std::int64_t wall_clock_ms) {
  auto object = about_dual(step.plan);
  object["outcome"] = outcome_of(step.report.verdict);
  object["changed"] = step.report.changed;
  object["text"] = step.report.text;
  object["window"] = value_of(step.report.window, step.plan, wall_clock_ms);
  object["waits_for"] = programs_of(step.report.waits_for);
  object["strangers"] = dual_strangers_of(step.report.strangers);
  object["finished"] = step.finished;
  object["withdrawn"] = step.withdrawn;
  return json::serialize(object);
}

std::string to_text(const moves::DualStepReport& step) {
  const auto& report = step.report;
  std::string text = step.plan.name + ": " + report.text;
  // The sentence names the first of them.
  if (report.waits_for.size() > kMostNamed) text += text_of(report.waits_for);
  if (report.strangers.size() > kMostNamed) text += text_of(report.strangers);
  if (step.withdrawn) return text + fmt::format("\nplan {} is withdrawn", step.plan.name);
  if (step.finished) {
    text += fmt::format("\nplan {} is finished: its locks are at home in '{}'", step.plan.name,
                        step.plan.to);
  }
  if (report.verdict == Verdict::done && report.window) {
    text += "\nconfiguration: " + line_to_write(step.plan, *report.window);
  }
  return text;
}

}  // namespace dlock::cli

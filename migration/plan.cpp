// SPDX-License-Identifier: Apache-2.0
#include "migration/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/routes.hpp"
#include "core/spi/word.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"
#include "migration/fields.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

constexpr std::string_view kVersion = "dlock-plan4";
constexpr std::string_view kPlanStamp = "dlock-plan";
constexpr unsigned kNewestPlan = 4;
constexpr unsigned kListFormat = 1;

void parse_patterns(Fields& fields, std::vector<std::string>& patterns) {
  const auto count = fields.number("patterns", kLongestPlan);
  for (std::uint64_t i = 0; i < count && fields.good(); ++i) {
    const auto pattern = fields.word("patterns");
    if (!fields.good()) return;
    if (!pattern_error(pattern).empty()) return fields.fail("one of its patterns is not a pattern");
    if (!patterns.empty() && patterns.back() >= pattern) {
      return fields.fail("its patterns are not in order");
    }
    patterns.emplace_back(pattern);
  }
}

void add_lines(std::string& text, std::string_view key, const std::vector<std::string>& lines) {
  text += fmt::format("\n{}={}", key, lines.size());
  for (const auto& line : lines) {
    text += '\n';
    text += line;
  }
}

}  // namespace

bool Plan::has(std::string_view lock) const {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return pattern_matches(pattern, lock); });
}

std::string Plan::prefix() const {
  std::optional<std::vector<std::string_view>> common;
  const auto take = [&common](std::string_view pattern) {
    auto parts = split_name(pattern);
    parts.erase(std::find_if(parts.begin(), parts.end(),
                             [](std::string_view part) { return part.find('*') != part.npos; }),
                parts.end());
    if (!common) {
      common = std::move(parts);
    } else {
      const auto end = std::mismatch(common->begin(), common->end(), parts.begin(), parts.end());
      common->erase(end.first, common->end());
    }
  };
  for (const auto& pattern : patterns) take(pattern);
  return common ? fmt::format("{}", fmt::join(*common, "/")) : std::string();
}

std::string to_text(const Plan& plan) {
  std::string text = fmt::format(
      "{}\nname={}\nid={}\nfrom={}\nto={}\nmax_lease_ms={}\nlossy_target={}\nleased_target={}"
      "\nfloor={}\ngate={}\nlease_ms={}",
      kVersion, plan.name, plan.id, plan.from, plan.to, plan.max_lease.count(),
      plan.lossy_target ? 1 : 0, plan.leased_target ? 1 : 0, plan.floor, plan.gate,
      plan.lease.count());
  add_lines(text, "patterns", plan.patterns);
  return text;
}

std::optional<Plan> parse_plan(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestPlan + 1), '\n');
  if (text.size() > kLongestPlan) fields.fail("it is too long for a plan");
  const auto version = fields.word("version");
  if (auto newer = newer_plan(version); !newer.empty()) fields.fail(std::move(newer));
  if (version != kVersion) {
    fields.fail(
        fmt::format("it does not begin with '{}': it is not a plan, or another version of dlock "
                    "wrote it",
                    kVersion));
  }
  Plan plan;
  plan.name = fields.name("name");
  plan.id = fields.value("id");
  if (fields.good() && !is_plan_id(plan.id)) fields.fail("its id is not one of a plan");
  plan.from = fields.name("from");
  plan.to = fields.name("to");
  plan.max_lease = std::chrono::milliseconds(fields.number("max_lease_ms", kMostMilliseconds));
  plan.lossy_target = fields.number("lossy_target", 1) == 1;
  plan.leased_target = fields.number("leased_target", 1) == 1;
  plan.floor = fields.number("floor", kTokenEnd - 1);
  plan.gate = fields.value("gate");
  if (fields.good() && plan.is_leased() && !is_word(plan.gate)) {
    fields.fail("its gate is not the name of a store");
  }
  plan.lease = std::chrono::milliseconds(fields.number("lease_ms", kMostMilliseconds));
  parse_patterns(fields, plan.patterns);
  if (fields.good() && plan.patterns.empty()) {
    fields.fail("it has no patterns: another version of dlock wrote it");
  }
  fields.end();
  if (fields.good()) return plan;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

std::string plan_key(std::string_view plan) { return fmt::format("plan/{}", plan); }
std::string home_key(std::string_view plan) { return fmt::format("home/{}", plan); }

std::string finished_entry(std::string_view plan) { return fmt::format("={}", plan); }
bool is_finished_entry(std::string_view entry) noexcept { return entry.starts_with('='); }

std::string started_entry(const Plan& plan) { return fmt::format("{}@{}", plan.name, plan.id); }

std::string pending_entry(const Plan& plan) { return "~" + started_entry(plan); }

bool is_pending_entry(std::string_view entry) noexcept { return entry.starts_with('~'); }

std::string plan_of_entry(std::string_view entry) {
  const bool marked = is_finished_entry(entry) || is_pending_entry(entry);
  return std::string(entry.substr(0, entry.rfind('@')).substr(marked ? 1 : 0));
}

bool is_about(std::string_view entry, const Plan& plan) {
  if (is_finished_entry(entry) || plan_of_entry(entry) != plan.name) return false;
  return entry.rfind('@') == std::string_view::npos || entry.ends_with("@" + plan.id);
}

bool lists_started(const std::vector<std::string>& entries, std::string_view plan) {
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    const bool started = !is_finished_entry(entry) && !is_pending_entry(entry);
    return started && plan_of_entry(entry) == plan;
  });
}

std::string newer_plan(std::string_view text) {
  return newer_format("it", text, kPlanStamp, kNewestPlan);
}

std::vector<std::string> sorted(std::vector<std::string> entries) {
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

std::string list_text(std::vector<std::string> entries) {
  entries = sorted(std::move(entries));
  if (entries.empty()) return {};
  return fmt::format("{}{}\n{}", kListStamp, kListFormat, fmt::join(entries, "\n"));
}

std::optional<std::vector<std::string>> parse_list(std::string_view text, std::string* why) {
  std::vector<std::string> entries;
  if (text.empty()) return entries;
  Fields fields(text, '\n');
  fields.format(kListStamp, kListFormat);
  if (!fields.good()) {
    if (why != nullptr) *why = fields.error();
    return std::nullopt;
  }
  text.remove_prefix(std::min(text.find('\n'), text.size()));
  while (!text.empty()) {
    text.remove_prefix(1);
    const auto entry = text.substr(0, text.find('\n'));
    if (!entry.empty()) entries.emplace_back(entry);
    text.remove_prefix(entry.size());
  }
  return sorted(std::move(entries));
}

std::vector<std::string> with_entry(std::vector<std::string> entries, const std::string& entry) {
  entries.push_back(entry);
  return sorted(std::move(entries));
}

std::vector<std::string> without_entry(std::vector<std::string> entries, const std::string& entry) {
  entries.erase(std::remove(entries.begin(), entries.end(), entry), entries.end());
  return entries;
}

std::optional<std::string> common_names(const Plan& one, const Plan& other) {
  for (const auto& pattern : one.patterns) {
    for (const auto& theirs : other.patterns) {
      if (patterns_meet(pattern, theirs)) return pattern;
    }
  }
  return std::nullopt;
}

std::string start_broken_off(std::string_view plan) {
  return fmt::format(
      "the start of plan '{0}' was refused or broken off, and nothing of it is in effect; run "
      "`dlock migrate start {0}`",
      plan);
}

std::string route_line(std::string_view lock, std::string_view from, std::string_view to,
                       std::string_view plan, std::string_view gate) {
  return fmt::format("- {{ match: \"{}\", migrate: {{ from: {}, to: {}, plan: {}{}{} }} }}", lock,
                     from, to, plan, gate.empty() ? "" : ", gate: ", gate);
}

std::string route_line(std::string_view lock, const Plan& plan) {
  return route_line(lock, plan.from, plan.to, plan.name, plan.gate);
}

std::string store_line(std::string_view lock, std::string_view store) {
  return fmt::format("- {{ match: \"{}\", store: {} }}", lock, store);
}

}  // namespace dlock::core::migration

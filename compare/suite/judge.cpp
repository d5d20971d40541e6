// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>

#include "testkit/checkers/exclusion.hpp"

namespace dlock::compare {

namespace {

using checkers::EventKind;

/// A push is a matter of milliseconds; the rest is for a machine that is busy with other things.
constexpr std::chrono::milliseconds kLongestWakeUp{1000};

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// Until when the earlier holder went on believing.
TimePoint end_of_belief(const checkers::Grant& grant, TimePoint from, TimePoint end) {
  TimePoint until = grant.deadlines.empty() ? end : grant.deadlines.rbegin()->second;
  for (const auto& moment : {grant.releasing, grant.told_lost, grant.died}) {
    if (moment) until = std::min(until, *moment);
  }
  return std::clamp(until, from, std::max(from, end));
}

struct Stale {
  std::size_t arrived = 0;  ///< writes of a holder after another was granted: all, without fencing
  std::size_t accepted =
      0;  ///< those that pass a check of the token once the newer one has written
};

Stale stale_writes(const Outcome& outcome,
                   const std::map<checkers::GrantId, checkers::Grant>& all) {
  Stale stale;
  std::uint64_t highest = 0;
  std::map<checkers::GrantId, bool> wrote;
  for (const auto& write : outcome.writes) {
    const checkers::Grant* newest = nullptr;
    checkers::GrantId newest_id = 0;
    for (const auto& [id, grant] : all) {
      if (grant.granted <= write.at && (newest == nullptr || newest->granted < grant.granted)) {
        newest = &grant;
        newest_id = id;
      }
    }
    const bool passes = write.token == 0 || write.token >= highest;
    if (newest != nullptr && newest_id != write.grant) {
      ++stale.arrived;
      if (passes && wrote[newest_id]) ++stale.accepted;
    }
    if (passes) highest = std::max(highest, write.token);
    wrote[write.grant] = true;
  }
  return stale;
}

/// The first event of a kind at or after a moment.
const checkers::Event* first_after(const checkers::History& history, EventKind kind, TimePoint at) {
  for (const auto& event : history) {
    if (event.kind == kind && event.at >= at) return &event;
  }
  return nullptr;
}

/// Who was granted out of the order of asking.
std::size_t passed_over(const checkers::History& history) {
  std::vector<std::string> line;
  std::size_t found = 0;
  for (const auto& event : history) {
    if (event.kind == EventKind::wanted) line.push_back(event.client);
    // Who is cut off, stopped or dead loses its place.
    if (event.kind == EventKind::faulted) std::erase(line, event.client);
    if (event.kind != EventKind::granted) continue;
    const auto place = std::find(line.begin(), line.end(), event.client);
    if (place == line.end()) continue;
    if (place != line.begin()) ++found;
    line.erase(place);
  }
  return found;
}

/// The longest from a holder's beginning to give back until the next one, who waited, has it; only
/// where nothing was broken.
std::optional<Duration> slowest_wake_up(const checkers::History& history) {
  if (first_after(history, EventKind::faulted, TimePoint()) != nullptr) return std::nullopt;
  std::optional<Duration> slowest;
  TimePoint given_back = kNever;
  int waiting = 0;
  for (const auto& event : history) {
    if (event.kind == EventKind::wanted) ++waiting;
    if (event.kind == EventKind::releasing && waiting > 0) given_back = event.at;
    if (event.kind != EventKind::granted) continue;
    --waiting;
    if (given_back != kNever) {
      slowest = std::max(slowest.value_or(Duration(0)), event.at - given_back);
    }
    given_back = kNever;
  }
  return slowest;
}

boost::json::array texts(const checkers::Violations& violations) {
  boost::json::array all;
  for (const auto& one : violations) all.push_back(boost::json::string(one.what));
  return all;
}

/// What is wrong with the tokens alone: the checker also tells what makes no sense in the history.
checkers::Violations fallen_tokens(const checkers::History& history) {
  auto found = checkers::check_tokens(history);
  for (const auto& other : checkers::check_telling(history)) {
    std::erase_if(found, [&](const auto& one) { return one.what == other.what; });
  }
  return found;
}

}  // namespace

boost::json::object judge(Outcome& outcome) {
  auto& history = outcome.history;
  std::stable_sort(history.begin(), history.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  checkers::Violations broken;
  const auto grants = checkers::grants_of(history, broken);
  const auto overlaps = checkers::overlaps_of(history, broken);
  const TimePoint end = history.empty() ? TimePoint() : history.back().at;
  double overlap = 0;
  for (const auto& one : overlaps) {
    overlap = std::max(overlap,
                       milliseconds(end_of_belief(grants.at(one.earlier), one.at, end) - one.at));
  }
  const Stale stale = stale_writes(outcome, grants);
  boost::json::object values{
      {"double_grants", overlaps.size()}, {"overlap_ms", overlap},
      {"stale_writes", stale.arrived},    {"stale_writes_fenced", stale.accepted},
      {"grants", grants.size()},          {"passed_over", passed_over(history)}};
  if (const auto* fault = first_after(history, EventKind::faulted, TimePoint())) {
    if (const auto* told = first_after(history, EventKind::told_lost, fault->at)) {
      values["told_ms"] = milliseconds(told->at - fault->at);
    }
    const auto* heal = first_after(history, EventKind::healed, fault->at);
    const auto* from_fault = first_after(history, EventKind::granted, fault->at);
    if (from_fault != nullptr) values["granted_ms"] = milliseconds(from_fault->at - fault->at);
    if (heal != nullptr) {
      const auto* next = first_after(history, EventKind::granted, heal->at);
      if (next != nullptr) values["progress_ms"] = milliseconds(next->at - heal->at);
    }
  }
  if (const auto slowest = slowest_wake_up(history)) {
    values["wake_up_ms"] = milliseconds(*slowest);
  }
  boost::json::array missed;
  for (const auto& one : outcome.missed) missed.push_back(boost::json::string(one));
  return {{"values", std::move(values)},
          {"tokens_fell", texts(fallen_tokens(history))},
          {"telling", texts(checkers::check_telling(history))},
          {"missed", std::move(missed)}};
}

std::vector<std::string> contradictions(Outcome& outcome, const boost::json::object& judged,
                                        const boost::json::object& declared) {
  std::vector<std::string> found;
  const auto& values = judged.at("values").as_object();
  const auto count = [&](const char* name) { return values.at(name).to_number<std::int64_t>(); };
  if (declared.at("guarantee") == "exclusive" && count("double_grants") > 0) {
    found.push_back(fmt::format(
        "declares exclusive, and granted the lock {} time(s) while another still believed",
        count("double_grants")));
  }
  if (declared.at("token") != "none") {
    if (!judged.at("tokens_fell").as_array().empty()) {
      found.push_back(fmt::format("declares {} tokens, and they fell: {}",
                                  declared.at("token").as_string().c_str(),
                                  judged.at("tokens_fell").at(0).as_string().c_str()));
    }
    if (count("stale_writes_fenced") > 0) {
      found.push_back(fmt::format("{} stale write(s) passed the check of the token",
                                  count("stale_writes_fenced")));
    }
  }
  if (!judged.at("telling").as_array().empty()) {
    found.push_back(fmt::format("the holder was told wrongly: {}",
                                judged.at("telling").at(0).as_string().c_str()));
  }
  if (declared.at("fair").as_bool() && count("passed_over") > 0) {
    found.push_back(fmt::format("declares first come, first served, and passed over {} client(s)",
                                count("passed_over")));
  }
  const auto* wake_up = values.if_contains("wake_up_ms");
  if (declared.at("wake_up") == "push" && wake_up != nullptr &&
      wake_up->as_double() > milliseconds(kLongestWakeUp)) {
    found.push_back(fmt::format("declares that waiters are told, and one waited on for {:.0f} ms",
                                wake_up->as_double()));
  }
  for (const auto& missed : outcome.missed) found.push_back(missed);
  return found;
}

}  // namespace dlock::compare

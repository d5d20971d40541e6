// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/contention.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string>

#include "compare/drivers/histogram.hpp"
#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/permits.hpp"

namespace dlock::compare {

namespace {

/// Jain's index of how often each got it: 1 when all as often, 1/n when only one did.
double jain(const std::vector<Turn>& turns, std::size_t clients) {
  std::map<std::int64_t, double> grants;
  for (const auto& turn : turns) grants[turn.client] += 1;
  double sum = 0, squares = 0;
  for (const auto& [client, count] : grants) {
    sum += count;
    squares += count * count;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(clients) * squares);
}

/// Turns in which somebody was passed by who had asked before, by more than a millisecond: less is
/// the way to the server.
std::size_t inversions(const std::vector<Turn>& turns) {
  constexpr std::int64_t margin = 1'000'000;
  std::map<std::int64_t, std::int64_t> next_asked;  // by client, of its turn after the present one
  std::size_t found = 0;
  const std::vector<Turn> latest_first(turns.rbegin(), turns.rend());
  for (const auto& turn : latest_first) {
    const bool passed = std::any_of(next_asked.begin(), next_asked.end(), [&](const auto& other) {
      return other.first != turn.client && other.second + margin < turn.asked;
    });
    if (passed) ++found;
    next_asked[turn.client] = turn.asked;
  }
  return found;
}

/// What an observer has seen of them: who gives back claims nothing from there on.
checkers::History history_of(const std::vector<Turn>& turns, std::uint64_t permits) {
  using checkers::EventKind;
  checkers::History history;
  checkers::GrantId grant = 0;
  for (const auto& turn : turns) {
    checkers::Event event;
    event.name = "lock";
    event.client = std::to_string(turn.client);
    event.grant = ++grant;
    event.mode = turn.reads ? Mode::shared : Mode::exclusive;
    event.permits = permits == 0 ? 0 : 1;
    event.at = TimePoint(Duration(turn.got));
    event.kind = EventKind::granted;
    history.push_back(event);
    event.at = TimePoint(Duration(turn.gave));
    event.kind = EventKind::releasing;
    history.push_back(event);
  }
  std::stable_sort(history.begin(), history.end(),
                   [](const auto& one, const auto& other) { return one.at < other.at; });
  return history;
}

std::size_t most_together(const checkers::History& history) {
  std::size_t now = 0, most = 0;
  for (const auto& event : history) {
    if (event.kind == checkers::EventKind::granted) {
      most = std::max(most, ++now);
    } else {
      --now;
    }
  }
  return most;
}

}  // namespace

boost::json::object judge_sharing(std::vector<Turn> turns, std::uint64_t permits) {
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.got < b.got; });
  Histogram read, write, all;
  for (const auto& turn : turns) {
    const auto waited =
        static_cast<std::uint64_t>(std::max<std::int64_t>(turn.got - turn.asked, 0));
    all.add(waited);
    (turn.reads ? read : write).add(waited);
  }
  const auto history = history_of(turns, permits);
  const auto violations =
      permits == 0 ? checkers::check_exclusion(history) : checkers::check_permits(history, permits);
  boost::json::array broken;
  for (const auto& one : violations) broken.push_back(boost::json::string(one.what));
  const double seconds =
      turns.size() < 2 ? 1 : static_cast<double>(turns.back().got - turns.front().got) / 1e9;
  boost::json::object judged{
      {"values", boost::json::object{{"grants_per_s", static_cast<double>(turns.size()) / seconds},
                                     {"together", most_together(history)}}},
      {"turns", turns.size()},
      {"acquire", all.to_json()},
      {"broken", std::move(broken)}};
  if (permits == 0) {
    judged["read"] = read.to_json();
    judged["write"] = write.to_json();
  }
  return judged;
}

std::vector<Turn> until_the_first_stopped(std::vector<Turn> turns, std::size_t most) {
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.got < b.got; });
  std::map<std::int64_t, std::size_t> counts;
  const auto last = std::find_if(turns.begin(), turns.end(),
                                 [&](const Turn& turn) { return ++counts[turn.client] == most; });
  if (last != turns.end()) turns.erase(std::next(last), turns.end());
  return turns;
}

boost::json::object judge_turns(std::vector<Turn> turns, std::size_t clients) {
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.got < b.got; });
  Histogram handover;
  std::size_t retakes = 0, overlaps = 0;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    const auto latency = turns[i].got - turns[i - 1].gave;
    if (latency < 0) ++overlaps;
    if (turns[i].client == turns[i - 1].client) {
      ++retakes;
    } else {
      handover.add(static_cast<std::uint64_t>(std::max<std::int64_t>(latency, 0)));
    }
  }
  const double count = std::max<double>(1, static_cast<double>(turns.size()));
  const double seconds =
      turns.size() < 2 ? 1 : static_cast<double>(turns.back().got - turns.front().got) / 1e9;
  boost::json::object values{
      {"handovers_per_s", static_cast<double>(handover.count()) / seconds},
      {"jain", jain(turns, clients)},
      {"inversions_percent", 100.0 * static_cast<double>(inversions(turns)) / count},
      {"retakes_percent", 100.0 * static_cast<double>(retakes) / count}};
  // Where nothing was handed over there is no latency, and 0 would be the best of all.
  if (handover.count() > 0) {
    values["handover_p50_us"] = handover.percentile_ns(50) / 1000;
    values["handover_p99_us"] = handover.percentile_ns(99) / 1000;
  }
  return {{"values", std::move(values)},
          {"overlaps", overlaps},
          {"turns", turns.size()},
          {"handover", handover.to_json()}};
}

}  // namespace dlock::compare

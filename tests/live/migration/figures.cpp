// SPDX-License-Identifier: Apache-2.0
//
// What a run came to, in figures; the judging is the soak's.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/live/migration/conductor.hpp"

namespace dlock::fleet {
namespace {

using soak::Note;

/// A line, and whose it is.
struct Said {
  TimePoint at;
  int worker = 0;
  const soak::Line* line = nullptr;  ///< nullptr: it was killed
};

std::vector<Said> in_order(const soak::Records& records) {
  std::map<int, TimePoint> died;
  std::vector<Said> all;
  for (const auto& death : records.deaths) {
    died[death.worker] = death.at;
    all.push_back({death.at, death.worker, nullptr});
  }
  for (const auto& [worker, lines] : records.lines) {
    const auto end = died.count(worker) != 0 ? died[worker] : kNever;
    for (const auto& line : lines) {
      if (line.at < end) all.push_back({line.at, worker, &line});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Said& a, const Said& b) { return a.at < b.at; });
  return all;
}

/// Of one name: who wants it, who holds it, and since when it is wanted and free.
struct NameNow {
  std::set<std::pair<int, int>> wanted;             ///< worker, actor
  std::set<std::pair<int, std::uint64_t>> holders;  ///< worker, grant
  TimePoint since = kNever;

  Duration look(TimePoint now) {
    Duration waited{0};
    if (since != kNever) waited = now - since;
    if (wanted.empty() || !holders.empty()) {
      since = kNever;
    } else if (since == kNever) {
      since = now;
    }
    return waited;
  }
};

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

template <class Set>
void drop_of(Set& all, int worker) {
  for (auto at = all.begin(); at != all.end();) at = at->first == worker ? all.erase(at) : ++at;
}

}  // namespace

Duration longest_wait(const soak::Records& records) {
  std::map<std::string, NameNow> names;
  std::map<std::pair<int, std::uint64_t>, std::string> names_of;
  Duration longest{0};
  for (const auto& said : in_order(records)) {
    if (said.line == nullptr) {
      for (auto& [text, name] : names) {
        drop_of(name.wanted, said.worker);
        drop_of(name.holders, said.worker);
        longest = std::max(longest, name.look(said.at));
      }
      continue;
    }
    const auto& line = *said.line;
    const std::pair grant(said.worker, line.grant);
    std::string about = line.name;
    switch (line.note) {
      case Note::wanted:
        names[about].wanted.insert({said.worker, line.actor});
        break;
      case Note::given_up:
        names[about].wanted.erase({said.worker, line.actor});
        break;
      case Note::granted:
        names_of[grant] = about;
        names[about].wanted.erase({said.worker, line.actor});
        names[about].holders.insert(grant);
        break;
      case Note::releasing:
      case Note::told_lost:
        about = names_of[grant];
        names[about].holders.erase(grant);
        break;
      default:
        continue;
    }
    longest = std::max(longest, names[about].look(said.at));
  }
  return longest;
}

std::size_t flips_seen(const soak::Records& records) {
  std::map<std::pair<int, std::uint64_t>, std::string> names_of;
  std::map<std::string, std::string> stores;
  std::size_t flips = 0;
  for (const auto& said : in_order(records)) {
    if (said.line == nullptr) continue;
    const std::pair grant(said.worker, said.line->grant);
    if (said.line->note == Note::granted) names_of[grant] = said.line->name;
    if (said.line->note != Note::in_store) continue;
    auto& store = stores[names_of[grant]];
    if (!store.empty() && store != said.line->name) ++flips;
    store = said.line->name;
  }
  return flips;
}

std::string story_of(const FleetRun& run, const std::string& name, TimePoint when) {
  constexpr auto kBefore = std::chrono::seconds(8);
  constexpr auto kAfter = std::chrono::seconds(1);
  std::vector<Remark> story = run.remarks;
  std::map<std::pair<int, std::uint64_t>, std::string> names_of;
  for (const auto& said : in_order(run.records)) {
    if (said.line == nullptr) {
      story.push_back({said.at, fmt::format("worker {} is killed", said.worker)});
      continue;
    }
    const auto& line = *said.line;
    if (line.note == Note::granted) names_of[{said.worker, line.grant}] = line.name;
    const auto of = names_of.find({said.worker, line.grant});
    const bool about = line.name == name || line.name.find(name + ":") == 0 ||
                       line.name.find(name + " ") == 0 ||
                       (line.grant != 0 && of != names_of.end() && of->second == name);
    if (!about) continue;
    story.push_back(
        {line.at,
         fmt::format("worker {}/{} {} {} (grant {}, token {}, for {} ms)", said.worker, line.actor,
                     soak::to_string(line.note), line.name, line.grant, line.token,
                     line.until == kNever ? -1 : in_ms(line.until - line.at))});
  }
  for (const auto& stop : run.records.stops) {
    story.push_back({stop.from, fmt::format("worker {} is stopped", stop.worker)});
    story.push_back({stop.to, fmt::format("worker {} goes on", stop.worker)});
  }
  std::stable_sort(story.begin(), story.end(),
                   [](const Remark& a, const Remark& b) { return a.at < b.at; });
  std::string text;
  for (const auto& one : story) {
    if (one.at < when - kBefore || one.at > when + kAfter) continue;
    text += fmt::format("  {:+} ms: {}\n", in_ms(one.at - when), one.text);
  }
  return text;
}

std::map<std::string, std::size_t> grants_by_store(const soak::Records& records) {
  std::map<std::string, std::size_t> grants;
  for (const auto& said : in_order(records)) {
    if (said.line != nullptr && said.line->note == Note::in_store) ++grants[said.line->name];
  }
  return grants;
}

}  // namespace dlock::fleet

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/progress.hpp"
#include "testkit/checkers/register.hpp"
#include "tests/soak/records.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::soak {
namespace {

using checkers::EventKind;
using checkers::GrantId;

constexpr std::chrono::milliseconds kLookedBefore{50};

GrantId unique_grant(int worker, std::uint64_t grant) {
  return (static_cast<GrantId>(worker) << 32U) + grant;
}
int worker_of(GrantId grant) { return static_cast<int>(grant >> 32U); }
std::string client(int worker, int actor) { return fmt::format("worker {}/{}", worker, actor); }

EventKind kind_of(Note note) {
  switch (note) {
    case Note::wanted:
      return EventKind::wanted;
    case Note::given_up:
      return EventKind::given_up;
    case Note::granted:
      return EventKind::granted;
    case Note::extended:
      return EventKind::extended;
    case Note::releasing:
      return EventKind::releasing;
    default:
      return EventKind::told_lost;
  }
}

class Judge {
 public:
  Judge(const Records& records, const Terms& terms) : records_(records), terms_(terms) {}

  Judgement result() {
    said_.violations = records_.seen;
    write_history();
    exclusion();
    telling();
    guarded();
    progress();
    for (const auto& one : records_.struck) ++said_.faults[one.kind];
    return std::move(said_);
  }

 private:
  void violation(std::string what, TimePoint at) {
    said_.violations.push_back({std::move(what), at});
  }
  void add(checkers::Violations more) {
    for (auto& one : more) said_.violations.push_back(std::move(one));
  }

  void write_history() {
    std::map<int, TimePoint> died;
    for (const auto& death : records_.deaths) died[death.worker] = death.at;
    for (const auto& [worker, lines] : records_.lines) {
      for (const auto& line : lines) {
        // What it did between our stamp and its end is not held against it.
        if (died.count(worker) != 0 && line.at >= died[worker]) continue;
        if (line.note == Note::held_up) {
          held_up_[worker].push_back({worker, line.at, line.until});
          continue;
        }
        const bool is_remark = line.note == Note::refused || line.note == Note::in_store ||
                               line.note == Note::turned_away;
        if (is_remark) continue;
        if (line.note == Note::odd) {
          violation(fmt::format("worker {}: {}", worker, line.name), line.at);
          continue;
        }
        checkers::Event event;
        event.at = line.at;
        event.kind = kind_of(line.note);
        event.name = line.name == "-" ? std::string() : line.name;
        event.client = client(worker, line.actor);
        event.grant = unique_grant(worker, line.grant);
        event.until = line.until;
        if (line.token != 0) event.token = line.token;
        if (line.note == Note::granted) ++said_.acquisitions;
        if (line.note == Note::extended) ++said_.extensions;
        history_.push_back(std::move(event));
      }
    }
    for (const auto& death : records_.deaths) {
      for (int actor = 0; actor < kActors; ++actor) {
        checkers::Event event;
        event.at = death.at;
        event.kind = EventKind::died;
        event.client = client(death.worker, actor);
        history_.push_back(std::move(event));
      }
    }
    for (const auto& one : records_.struck) {
      checkers::Event event;
      event.at = one.from;
      event.kind = EventKind::faulted;
      history_.push_back(event);
      event.at = one.to;
      event.kind = EventKind::healed;
      history_.push_back(std::move(event));
    }
    std::stable_sort(history_.begin(), history_.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
  }

  /// The fault after which the store's own word lets two in; empty if there is none.
  std::string exception_for(TimePoint earlier_granted, TimePoint at) const {
    for (const auto& one : records_.struck) {
      const bool excepted = std::find(terms_.excepted.begin(), terms_.excepted.end(), one.kind) !=
                            terms_.excepted.end();
      if (excepted && one.to >= earlier_granted && one.from <= at) return one.kind;
    }
    return {};
  }

  void exclusion() {
    checkers::Violations broken;
    const auto grants = checkers::grants_of(history_, broken);
    add(broken);
    checkers::Violations again;
    for (const auto& overlap : checkers::overlaps_of(history_, again)) {
      const auto& earlier = grants.at(overlap.earlier);
      const auto& later = grants.at(overlap.later);
      const auto cause = exception_for(earlier.granted, overlap.at);
      if (!cause.empty()) {
        ++said_.excepted[cause];
        // Its next renewal that is answered has to tell it. (A look is a few milliseconds late.)
        if (earlier.deadlines.rbegin()->first > overlap.at + kLookedBefore) {
          violation(fmt::format("{} goes on renewing '{}', which is another's since",
                                earlier.client, earlier.name),
                    overlap.at);
        }
        continue;
      }
      violation(fmt::format("'{}' granted to {} while {} holds it", later.name, later.client,
                            earlier.client),
                overlap.at);
    }
    add(checkers::check_tokens(without_grants_noticed_too_late(grants)));
    if (terms_.exclusive) told_before_the_next(grants);
  }

  bool ran_through(int worker, TimePoint from, TimePoint to) const {
    return std::none_of(records_.stops.begin(), records_.stops.end(), [&](const Stop& stop) {
      return stop.worker == worker && stop.from <= to && stop.to >= from;
    });
  }

  /// A process that is stopped between its grant and the line in its log writes that line when the
  /// grant is over, and others have been granted the lock since: nobody held by it, and when it was
  /// granted is not known. Without such an excuse nobody may be handed what is over.
  checkers::History without_grants_noticed_too_late(
      const std::map<GrantId, checkers::Grant>& grants) {
    std::set<GrantId> left_out;
    for (const auto& [id, grant] : grants) {
      const auto until = grant.deadlines.begin()->second;
      if (until > grant.granted) continue;
      left_out.insert(id);
      const auto late = grant.granted - until;
      const bool excused =
          !ran_through(worker_of(id), until, grant.granted) ||
          late - held_up_between(worker_of(id), until, grant.granted) <= Duration(kLookedBefore);
      if (!excused) violation(fmt::format("grant {} was over when it came", id), grant.granted);
    }
    checkers::History rest;
    std::copy_if(history_.begin(), history_.end(), std::back_inserter(rest),
                 [&](const auto& event) { return left_out.count(event.grant) == 0; });
    return rest;
  }

  Duration held_up_between(int worker, TimePoint from, TimePoint to) const {
    Duration sum{0};
    const auto found = held_up_.find(worker);
    if (found == held_up_.end()) return sum;
    for (const auto& one : found->second) {
      const auto begin = std::max(one.from, from);
      const auto end = std::min(one.to, to);
      if (begin < end) sum += end - begin;
    }
    return sum;
  }

  /// Not only past its deadline when the next one holds: told. The time for which the machine let
  /// the whole process wait is not ours.
  void told_before_the_next(const std::map<GrantId, checkers::Grant>& grants) {
    std::map<std::string, std::vector<TimePoint>> moments;
    for (const auto& [id, grant] : grants) moments[grant.name].push_back(grant.granted);
    for (auto& [name, all] : moments) std::sort(all.begin(), all.end());
    for (const auto& [id, grant] : grants) {
      if (!grant.told_lost) continue;
      const auto& all = moments[grant.name];
      const auto next = std::upper_bound(all.begin(), all.end(), grant.granted);
      if (next == all.end() || *next >= *grant.told_lost) continue;
      const auto until = grant.deadlines.rbegin()->second;
      if (!ran_through(worker_of(id), until, *grant.told_lost)) continue;
      const auto held_up = held_up_between(worker_of(id), until, *grant.told_lost);
      if (*grant.told_lost - held_up <= *next) continue;
      violation(fmt::format("{} was told that it lost '{}' after the next one held it",
                            grant.client, grant.name),
                *next);
    }
  }

  void telling() {
    checkers::Violations broken;
    for (const auto& [id, grant] : checkers::grants_of(history_, broken)) {
      if (!grant.told_lost) {
        const bool ended = grant.releasing || grant.died;
        if (!ended) violation(fmt::format("grant {} has no end", id), grant.granted);
        continue;
      }
      ++said_.losses;
      const auto until = grant.deadlines.rbegin()->second;
      if (until == kNever || !ran_through(worker_of(id), until, *grant.told_lost)) continue;
      said_.lateness.push_back(*grant.told_lost - until);
      said_.own_lateness.push_back(*grant.told_lost - until -
                                   held_up_between(worker_of(id), until, *grant.told_lost));
    }
    std::sort(said_.lateness.begin(), said_.lateness.end());
    std::sort(said_.own_lateness.begin(), said_.own_lateness.end());
  }

  void guarded() {
    for (const auto& [name, writes] : records_.writes) {
      std::vector<checkers::Write> seen;
      for (const auto& write : writes) {
        seen.push_back(
            {write.at, unique_grant(write.worker, write.grant), write.token, write.accepted});
        ++said_.writes;
        said_.refused_writes += write.accepted ? 0 : 1;
      }
      add(checkers::check_register(seen));
    }
  }

  void progress() {
    add(checkers::check_progress(history_, terms_.progress_bound, records_.end));
    for (const auto took : records_.progress) {
      said_.longest_progress = std::max(said_.longest_progress, took);
    }
  }

  const Records& records_;
  const Terms& terms_;
  checkers::History history_;
  std::map<int, std::vector<Stop>> held_up_;  ///< by the machine, by worker
  Judgement said_;
};

}  // namespace

Duration quantile(const std::vector<Duration>& sorted, double share) {
  if (sorted.empty()) return Duration(0);
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted.at(std::clamp<std::size_t>(rank, 1, sorted.size()) - 1);
}

bool told_in_time(const std::vector<Duration>& sorted, Duration bound) {
  const auto first_late = std::upper_bound(sorted.begin(), sorted.end(), bound);
  const auto late = static_cast<std::size_t>(sorted.end() - first_late);
  return late <= std::max<std::size_t>(1, sorted.size() / 1000);
}

Judgement judge(const Records& records, const Terms& terms) {
  return Judge(records, terms).result();
}

}  // namespace dlock::soak

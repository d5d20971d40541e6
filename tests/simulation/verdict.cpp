// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "testkit/checkers/exclusion.hpp"
#include "testkit/checkers/permits.hpp"
#include "testkit/checkers/progress.hpp"

namespace dlock::simulation {
namespace {

/// 1 % of a lease or 20 ms: what the core's own margin allows a late timer.
constexpr milliseconds kLatestTelling{20};

void add(checkers::Violations& to, checkers::Violations more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

/// The last time that the store forgot the lock of that grant, up to `when`. That may have been
/// before the grant was heard of; but not before what granted it was sent, which was another lock
/// of the same claim. `until`: the first deadline.
const Forgotten* forgotten_by(const Scene& scene, GrantId grant, TimePoint until, TimePoint when,
                              Duration before = {}, bool surely = false) {
  const auto& owner = scene.recorder.owner_of(grant);
  const auto sent = until == kNever ? TimePoint{} : until - scene.store.lease() - before;
  const Forgotten* last = nullptr;
  for (const auto& forgotten : scene.recorder.forgotten()) {
    if (surely && !forgotten.is_certain) continue;
    if (forgotten.owner_id == owner && forgotten.by >= sent && forgotten.at <= when) {
      last = &forgotten;
    }
  }
  return last;
}

// A renewal that was sent after the store had forgotten must not have been taken for a success:
// then the holder believes longer than a lease from that moment on. A deposed server that some can
// still reach goes on saying yes; that is what a failover costs.
void check_told(const Scene& scene, const Forgotten& forgotten, const checkers::Grant& grant,
                GrantId id, checkers::Violations& found) {
  if (forgotten.cause == Fault::failover) return;
  // A late copy of its own request, a hand-over, or older data may bring it back; under a token of
  // its own for whoever has that one.
  const bool is_back =
      scene.recorder.was_made(forgotten.owner_id, forgotten.at, grant.token.value_or(0));
  if (scene.broken || is_back) return;
  const auto last = grant.deadlines.rbegin()->second;
  if (last == kNever || last <= forgotten.by + scene.store.believes_on()) return;
  found.push_back(
      {fmt::format("grant {} was prolonged to {} ms after the store had forgotten it ({})", id,
                   (last - forgotten.by) / milliseconds(1), to_string(forgotten.cause)),
       last});
}

void check_overlaps(const Scene& scene, RunResult& result) {
  const auto& history = scene.history;
  checkers::Violations none;
  const auto grants = checkers::grants_of(history, none);
  for (const auto& overlap : checkers::overlaps_of(history, none)) {
    const auto& earlier = grants.at(overlap.earlier);
    bool caused = false;
    for (const auto id : {overlap.earlier, overlap.later}) {
      const auto& grant = grants.at(id);
      const auto first = grant.deadlines.begin()->second;
      const auto* cause = forgotten_by(scene, id, first, overlap.at);
      if (cause == nullptr) continue;
      if (!std::exchange(caused, true)) ++result.doubles[cause->cause];
      const auto* sure = forgotten_by(scene, id, first, overlap.at, {}, true);
      if (sure != nullptr) check_told(scene, *sure, grant, id, result.violations);
    }
    if (caused) continue;
    result.violations.push_back(
        {fmt::format("grant {} of '{}' to {} while grant {} to {} believes that it holds it",
                     overlap.later, earlier.name, grants.at(overlap.later).client, overlap.earlier,
                     earlier.client),
         overlap.at});
  }
}

/// Without the grants that the store had forgotten before they were heard of: their tokens are
/// older than they seem.
checkers::History without_stale_grants(const Scene& scene) {
  checkers::History kept;
  std::set<GrantId> stale;
  for (const auto& event : scene.history) {
    if (event.kind == checkers::EventKind::granted &&
        forgotten_by(scene, event.grant, event.until, event.at, scene.store.remembers()) !=
            nullptr) {
      stale.insert(event.grant);
    }
    if (event.grant == 0 || stale.find(event.grant) == stale.end()) kept.push_back(event);
  }
  return kept;
}

/// The first grant under the same claim.
using FirstOfClaim = std::map<GrantId, GrantId>;
FirstOfClaim first_of_claims(const Scene& scene) {
  FirstOfClaim first;
  std::map<std::string, GrantId> by_owner;
  for (const auto& event : scene.history) {
    if (event.kind != checkers::EventKind::granted) continue;
    const auto& owner = scene.recorder.owner_of(event.grant);
    first[event.grant] = by_owner.emplace(owner, event.grant).first->second;
  }
  return first;
}

/// With one grant for each claim: those that came after it had its token.
checkers::History without_later_holders(const Scene& scene, const checkers::History& history) {
  const auto first = first_of_claims(scene);
  checkers::History kept;
  for (const auto& event : history) {
    const auto found = first.find(event.grant);
    if (found == first.end() || found->second == event.grant) kept.push_back(event);
  }
  return kept;
}

/// Of locks that stay: a claim has one token, whoever has it, and another claim another one; and
/// nobody has it again whose process gave it back.
void check_claims(const Scene& scene, RunResult& result) {
  const auto first = first_of_claims(scene);
  std::map<GrantId, std::optional<std::uint64_t>> tokens;
  std::map<std::string, GrantId> last;
  std::set<GrantId> known;
  for (const auto& event : scene.history) {
    if (event.kind != checkers::EventKind::granted) continue;
    const auto claim = first.at(event.grant);
    if (tokens.emplace(claim, event.token).first->second != event.token) {
      result.violations.push_back(
          {fmt::format("grant {} has another token than grant {} under the same claim", event.grant,
                       claim),
           event.at});
    }
    // Who was not told yet that his claim is gone may have it once more.
    if (forgotten_by(scene, event.grant, event.until, event.at) != nullptr) continue;
    const auto before = std::exchange(last[event.name], claim);
    if (known.insert(claim).second || before == claim) continue;
    result.violations.push_back(
        {fmt::format("grant {} is under the claim of grant {}, and grant {} came between",
                     event.grant, claim, before),
         event.at});
  }
}

/// Likewise of what was written.
std::vector<checkers::Write> by_claims(const Scene& scene, std::vector<checkers::Write> writes) {
  if (!scene.cached) return writes;
  const auto first = first_of_claims(scene);
  for (auto& write : writes) {
    if (const auto found = first.find(write.grant); found != first.end()) {
      write.grant = found->second;
    }
  }
  return writes;
}

/// The history as if everything had been broken up to that moment.
checkers::History broken_until(const checkers::History& history, TimePoint when) {
  checkers::History all;
  checkers::Event mark;
  mark.kind = checkers::EventKind::faulted;
  mark.at = history.front().at;
  all.push_back(mark);
  bool healed = false;
  for (const auto& event : history) {
    if (event.kind == checkers::EventKind::faulted || event.kind == checkers::EventKind::healed) {
      continue;
    }
    if (!healed && event.at >= when) {
      mark.kind = checkers::EventKind::healed;
      mark.at = when;
      all.push_back(mark);
      healed = true;
    }
    all.push_back(event);
  }
  return all;
}

/// A holder whose deadline has passed, and who runs, knows of it.
void check_silence(const Scene& scene, RunResult& result) {
  checkers::Violations none;
  for (const auto& [id, grant] : checkers::grants_of(scene.history, none)) {
    const auto last = grant.deadlines.rbegin()->second;
    const bool ended = grant.releasing || grant.told_lost || grant.died;
    if (ended || last == kNever || last + kLatestTelling > scene.end) continue;
    result.violations.push_back({fmt::format("the loss of grant {} was never told", id), last});
  }
}

void check_left(const Scene& scene, RunResult& result) {
  const auto left = scene.store.belongings();
  for (const auto& key : left.keys) {
    if (!scene.store.is_permitted(key)) {
      result.violations.push_back({"left behind: " + key, scene.end});
    }
  }
  for (const auto& watch : left.watches) {
    result.violations.push_back({"left behind: watch of " + watch, scene.end});
  }
}

}  // namespace

checkers::History history_of(const checkers::History& all, const std::string& prefix) {
  if (prefix.empty()) return all;
  checkers::History kept;
  std::set<GrantId> others;
  for (const auto& event : all) {
    const bool is_others = !event.name.empty() && !event.name.starts_with(prefix);
    if (is_others && event.grant != 0) others.insert(event.grant);
    if (!is_others && !others.contains(event.grant)) kept.push_back(event);
  }
  return kept;
}

void judge(const Scene& scene, RunResult& result) {
  const auto& history = scene.history;
  auto& found = result.violations;
  add(found, checkers::check_telling(history));
  check_overlaps(scene, result);
  if (!scene.tokens_fall) {
    auto known = without_stale_grants(scene);
    if (scene.cached) known = without_later_holders(scene, known);
    add(found, checkers::check_tokens(known));
  }
  if (scene.cached) check_claims(scene, result);
  add(found, checkers::check_progress(history, scene.store.progress_bound(), scene.end));
  add(found, checkers::check_progress(broken_until(history, scene.calm), scene.store.calm_bound(),
                                      scene.end));
  for (const auto& [lock, writes] : scene.recorder.writes()) {
    if (scene.tokens_fall || !lock.starts_with(scene.prefix)) continue;
    add(found, checkers::check_register(by_claims(scene, writes)));
  }
  if (scene.permits != 0) add(found, checkers::check_permits(history, scene.permits));
  check_silence(scene, result);
  check_left(scene, result);
}

void judge_telling(const Recorder& recorder, TimePoint end, RunResult& result) {
  auto& found = result.violations;
  add(found, recorder.violations());
  for (const auto late : recorder.lateness()) {
    if (late > kLatestTelling) {
      found.push_back(
          {fmt::format("a loss was told {} ms after the local deadline", late / milliseconds(1)),
           end});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
}

}  // namespace dlock::simulation

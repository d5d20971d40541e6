// SPDX-License-Identifier: Apache-2.0
#include "core/routes/route_uses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/config/routes.hpp"
#include "dlock/duration.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::core {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kVersion = "dlock-routes1\n";
constexpr std::string_view kRoutesStamp = "dlock-routes";
constexpr unsigned kRoutesFormat = 1;
constexpr milliseconds kKept = std::chrono::hours(24 * 7);
constexpr milliseconds kRecent = std::chrono::hours(12);
/// Half of what a note may have.
constexpr std::size_t kLongest = 32'768;
constexpr std::size_t kDigestDigits = 16;
constexpr std::size_t kFewestFields = 5;

std::string escaped(std::string_view text) {
  return percent_escape(text, [](unsigned char c) { return c > 0x20 && c != 0x7F; });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<milliseconds> parse_time(std::string_view text) {
  std::int64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < 0) return std::nullopt;
  return milliseconds(value);
}

std::optional<RouteUse> parse_use(std::string_view line) {
  const auto fields = split(line, ' ');
  if (fields.size() < kFewestFields) return std::nullopt;
  const auto since = parse_time(fields[1]);
  const auto last = parse_time(fields[2]);
  if (!since || !last) return std::nullopt;
  RouteUse use;
  use.configuration = fields[0];
  use.since = *since;
  use.last = *last;
  use.who = percent_unescape(fields[3]);
  use.match = percent_unescape(fields[4]);
  for (std::size_t i = kFewestFields; i < fields.size(); ++i) {
    use.before.push_back(percent_unescape(fields[i]));
  }
  if (!pattern_error(use.match).empty()) return std::nullopt;
  return use;
}

/// Returns nullopt for a note of another format.
std::optional<std::vector<RouteUse>> parse(std::string_view note) {
  std::vector<RouteUse> uses;
  if (note.empty()) return uses;
  if (!note.starts_with(kVersion)) return std::nullopt;
  note.remove_prefix(kVersion.size());
  for (const auto line : split(note, '\n')) {
    if (auto use = parse_use(line)) uses.push_back(std::move(*use));
  }
  return uses;
}

std::string to_line(const RouteUse& use) {
  auto line = fmt::format("{} {} {} {} {}", use.configuration, use.since.count(), use.last.count(),
                          escaped(use.who), escaped(use.match));
  for (const auto& pattern : use.before) line += " " + escaped(pattern);
  return line + "\n";
}

/// The newest entries that fit.
std::string to_text(std::vector<RouteUse> uses) {
  std::stable_sort(uses.begin(), uses.end(),
                   [](const RouteUse& a, const RouteUse& b) { return a.last > b.last; });
  std::string text(kVersion);
  for (const auto& use : uses) {
    const auto line = to_line(use);
    if (text.size() + line.size() <= kLongest) text += line;
  }
  return text;
}

bool is_covered(const std::vector<std::string>& patterns, std::string_view pattern) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& one) { return pattern_covers(one, pattern); });
}

/// StoreConfig::place() of the store with that name; its name if the place is not known.
std::string place_of(const Config& config, std::string_view name) {
  const auto store = std::find_if(config.stores.begin(), config.stores.end(),
                                  [&](const StoreConfig& one) { return one.name == name; });
  try {
    if (store != config.stores.end()) return store->place();
  } catch (const MissingReference&) {  // NOLINT(bugprone-empty-catch): the store has no URL
  }
  return std::string(name);
}

/// The route that leads names of `use` to another store than `store`; null: none does.
const RouteConfig* other_route(const Config& config, std::string_view store, const RouteUse& use) {
  const auto place = place_of(config, store);
  for (const auto& route : config.locks) {
    const bool meet = patterns_meet(route.match, use.match) && !is_covered(use.before, route.match);
    const bool leads_here = leads_to(route, store) || place_of(config, route.store) == place;
    if (meet && !leads_here) return &route;
    if (pattern_covers(route.match, use.match)) return nullptr;
  }
  return nullptr;
}

std::string ago(milliseconds moment, milliseconds now) {
  using std::chrono::minutes;
  const auto passed = std::chrono::floor<minutes>(std::max(now - moment, milliseconds(0)));
  return passed < minutes(1) ? "less than a minute ago" : format_duration(passed) + " ago";
}

}  // namespace

std::string config_digest(const Config& config) {
  std::string text;
  for (const auto& route : config.locks) {
    text += fmt::format("{} {}", escaped(route.match), escaped(place_of(config, route.store)));
    if (route.migrate) {
      text +=
          fmt::format(" {} {}", escaped(place_of(config, route.migrate->to)), route.migrate->plan);
    }
    text += '\n';
  }
  return sha256_hex(text).substr(0, kDigestDigits);
}

std::optional<std::string> with_route_use(std::string_view note, RouteUse use) {
  auto uses = parse(note);
  if (!uses) return std::nullopt;
  std::erase_if(*uses, [&](const RouteUse& old) { return use.last - old.last > kKept; });
  const auto same = std::find_if(uses->begin(), uses->end(), [&](const RouteUse& old) {
    return old.configuration == use.configuration && old.match == use.match;
  });
  if (same != uses->end()) {
    if (use.last - same->last < kRecent) return std::nullopt;
    use.since = same->since;
    uses->erase(same);
  }
  uses->push_back(std::move(use));
  return to_text(std::move(*uses));
}

std::vector<std::string> route_conflicts(const Config& config, std::string_view store,
                                         std::string_view note, milliseconds now) {
  std::vector<std::string> conflicts;
  const auto uses = parse(note);
  const auto newer = newer_format("the note of routes", note, kRoutesStamp, kRoutesFormat);
  if (!newer.empty()) conflicts.push_back(fmt::format("store '{}': {}", store, newer));
  if (!uses) return conflicts;
  const auto own = config_digest(config);
  for (const auto& use : *uses) {
    if (use.configuration == own || now - use.last > kKept) continue;
    const auto* const route = other_route(config, store, use);
    if (route == nullptr) continue;
    conflicts.push_back(fmt::format(
        "store '{}': programs with another configuration lock names of '{}' here since {}, last "
        "seen {}: {}; this configuration routes '{}' to '{}', so two programs may hold one lock. "
        "Stop those programs, or move the locks with dlock migrate (docs/migration.md)",
        store, use.match, ago(use.since, now), ago(use.last, now), use.who, route->match,
        route->store));
  }
  return conflicts;
}

}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a document, and what its sections are made from.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compare/report/figures.hpp"

namespace dlock::compare::report {

using boost::json::array;
using boost::json::object;

/// A run with its figures; of two, the names they have in tables.
struct Run {
  std::string name;
  Figures figures;
};
using Runs = std::vector<Run>;

inline object words(std::string_view text) { return {{"kind", "words"}, {"text", text}}; }
inline object callout(std::string_view tone, std::string_view text) {
  return {{"kind", "callout"}, {"tone", tone}, {"text", text}};
}
inline object cell(std::string_view text, std::string_view tone = {}) {
  object one{{"text", text}};
  if (!tone.empty()) one["tone"] = tone;
  return one;
}
inline object table(array headers, array rows) {
  return {{"kind", "table"}, {"headers", std::move(headers)}, {"rows", std::move(rows)}};
}
inline object section(std::string_view id, std::string_view title, array blocks) {
  return {{"id", id}, {"title", title}, {"blocks", std::move(blocks)}};
}

/// A store of a run, as the raw data describes it.
struct StoreRow {
  std::string id;
  std::string title;
  const object* description = nullptr;
};
/// Those that were reached, in the order of the run.
std::vector<StoreRow> stores_of(const Figures& figures);
std::string title_of(const Figures& figures, std::string_view store);

// The sections.
object overview(const Runs& runs);
object advice(const Runs& runs);
object trade_offs(const Figures& figures);
object slow_spots(const Figures& figures);
object repeatability(const Runs& runs);
object method(const Runs& runs);
void add_speed(const Runs& runs, array& sections);
void add_safety(const Runs& runs, array& sections);
void add_pitfalls(const Figures& figures, array& sections);

// What several sections say of a store.
std::string promise(const object& description);
/// Of its tokens, in words.
std::string strength(const object& declared);
/// Over all safety scenarios; the number of contradictions is in it.
struct Seen {
  int scenarios = 0;
  int double_grants = 0;  ///< scenarios with any
  double worst_overlap_ms = 0;
  int stale_fenced = 0;
  int contradictions = 0;
};
Seen seen(const Figures& figures, std::string_view store);

}  // namespace dlock::compare::report

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
#include "compare/report/tries.hpp"

namespace dlock::compare::report {

using boost::json::array;
using boost::json::object;

/// A run with its figures; of two, the names they have in tables.
struct Run {
  std::string name;
  Figures figures;
};
using Runs = std::vector<Run>;

/// A field of a result; empty if there is none.
inline std::string text_at(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

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
/// Shown by the terminal, too.
inline object on_terminal(object block) {
  block["terminal"] = true;
  return block;
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
/// Of dlock, over all safety scenarios.
struct Seen {
  std::size_t faults = 0;        ///< kinds of them
  std::size_t tries = 0;         ///< of a fault
  std::size_t acquisitions = 0;  ///< in all scenarios, those without a fault, too
  std::size_t two_holders = 0;   ///< tries in which there were
  double worst_overlap_ms = 0;
  std::size_t contradictions = 0;  ///< tries with any
};
Seen seen(const Figures& figures, std::string_view store);
/// "one holder in all 15 tries (5 faults, 30 acquisitions): ..."
std::string show_seen(const Seen& seen);
/// `good` only of tries enough.
std::string_view tone_of_seen(const Seen& seen);

/// "14.2 µs (n 30)"; "-" of nothing.
std::string with_samples(const std::optional<Figure>& figure, std::string_view unit);
Better better_of(const object& metric);

}  // namespace dlock::compare::report

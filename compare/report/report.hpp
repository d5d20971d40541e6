// SPDX-License-Identifier: Apache-2.0
//
// From raw results to what people read. A document is JSON, too: sections of blocks (words, tables,
// charts), so that the terminal, Markdown and HTML show the same.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace dlock::compare {

/// Writes report.md and report.html into `out`; returns the table for the terminal. One run, or two
/// to be set side by side.
std::string write_reports(const std::vector<boost::json::object>& runs,
                          const std::filesystem::path& out);

/// {"title", "subtitle", "banners": [text], "sections": [{"id", "title", "blocks": [...]}]};
/// blocks:
///  {"kind": "words", "text"}
///  {"kind": "callout", "tone": "good|bad|note", "text"}
///  {"kind": "list", "items": [text]}
///  {"kind": "table", "headers": [text], "rows": [[{"text", "tone"?}]]}; tones of cells: good,
///  warn,
///   bad, and thin (too few samples)
///  {"kind": "chart", "type": "bar|line|percentiles", "title", "unit", "labels", "sets": [...]}
/// A block with "terminal" is shown on the terminal, too.
boost::json::object make_document(const std::vector<boost::json::object>& runs);

std::string to_markdown(const boost::json::object& document);
std::string to_html(const boost::json::object& document);
/// The tables that are marked for it.
std::string to_terminal(const boost::json::object& document);

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compare/report/report.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

/// Columns on a terminal: a byte that continues a UTF-8 character takes none.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

std::string drawn_table(const object& block) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& header : block.at("headers").as_array()) {
    rows.front().emplace_back(header.as_string());
  }
  for (const auto& row : block.at("rows").as_array()) {
    rows.emplace_back();
    for (const auto& cell : row.as_array()) rows.back().emplace_back(cell.at("text").as_string());
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string to_terminal(const object& document) {
  std::string out;
  for (const auto& banner : document.at("banners").as_array()) {
    out += fmt::format("! {}\n", banner.as_string().c_str());
  }
  for (const auto& section : document.at("sections").as_array()) {
    std::string body;
    for (const auto& entry : section.at("blocks").as_array()) {
      const auto& block = entry.as_object();
      if (!block.contains("terminal")) continue;
      if (block.at("kind") == "callout") {
        body += fmt::format("{}\n\n", block.at("text").as_string().c_str());
      }
      if (block.at("kind") == "table") body += drawn_table(block);
      if (block.at("kind") == "list") {
        body += "\n";
        for (const auto& item : block.at("items").as_array()) {
          body += fmt::format("! {}\n", item.as_string().c_str());
        }
      }
    }
    if (body.empty()) continue;
    out += fmt::format("{}{}\n\n{}", out.empty() ? "" : "\n",
                       section.at("title").as_string().c_str(), body);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace dlock::compare

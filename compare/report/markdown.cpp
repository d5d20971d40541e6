// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compare/report/report.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '|') out += '\\';
    out += byte == '\n' ? ' ' : byte;
  }
  return out;
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + escaped(cell) + " |";
  return line + "\n";
}

std::string table_of(const object& block) {
  std::vector<std::string> headers;
  for (const auto& header : block.at("headers").as_array()) {
    headers.emplace_back(header.as_string());
  }
  std::string out = row_of(headers) + "|";
  for (std::size_t i = 0; i < headers.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& row : block.at("rows").as_array()) {
    std::vector<std::string> cells;
    for (const auto& cell : row.as_array()) cells.emplace_back(cell.at("text").as_string());
    out += row_of(cells);
  }
  return out + "\n";
}

}  // namespace

std::string to_markdown(const object& document) {
  std::string out = fmt::format("# {}\n\n{}\n\n", document.at("title").as_string().c_str(),
                                document.at("subtitle").as_string().c_str());
  for (const auto& banner : document.at("banners").as_array()) {
    out += fmt::format("> **{}**\n\n", banner.as_string().c_str());
  }
  for (const auto& section : document.at("sections").as_array()) {
    out += fmt::format("## {}\n\n", section.at("title").as_string().c_str());
    for (const auto& entry : section.at("blocks").as_array()) {
      const auto& block = entry.as_object();
      const auto& kind = block.at("kind").as_string();
      if (kind == "words") out += std::string(block.at("text").as_string()) + "\n\n";
      if (kind == "callout") out += fmt::format("**{}**\n\n", block.at("text").as_string().c_str());
      if (kind == "list") {
        for (const auto& item : block.at("items").as_array()) {
          out += fmt::format("- {}\n", item.as_string().c_str());
        }
        out += "\n";
      }
      if (kind == "table") out += table_of(block);
    }
  }
  return out;  // charts show what the tables say
}

}  // namespace dlock::compare

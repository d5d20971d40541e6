// SPDX-License-Identifier: Apache-2.0
#include "tests/support/manual.hpp"

#include <sstream>

#include "testkit/temp_dir.hpp"

namespace dlock::testkit {

std::vector<std::vector<std::string>> manual_commands(const std::string& page,
                                                      std::string_view heading) {
  std::istringstream text(read_file(page));
  std::vector<std::vector<std::string>> commands;
  bool below = false;
  bool in_block = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      in_block = line == "```sh";
    } else if (line.starts_with("## ")) {
      below = line.substr(3) == heading;
    } else if (below && in_block) {
      std::istringstream words(line.substr(0, line.find(" #")));
      std::vector<std::string> command;
      for (std::string word; words >> word;) command.push_back(word);
      if (command.empty() || command.front() == "export") continue;
      if (command.front() == "dlock") command.erase(command.begin());
      commands.push_back(std::move(command));
    }
  }
  return commands;
}

std::vector<std::string> manual_configurations(const std::string& page, std::string_view heading) {
  std::istringstream text(read_file(page));
  std::vector<std::string> blocks;
  bool below = false;
  bool in_block = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      in_block = below && line == "```yaml";
      if (in_block) blocks.emplace_back();
    } else if (line.starts_with("## ")) {
      below = line.substr(3) == heading;
    } else if (in_block) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

std::string with_stores(const std::string& configuration,
                        const std::map<std::string, std::string>& urls) {
  std::istringstream lines(configuration);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    for (const auto& [name, url] : urls) {
      const auto start = "  " + name + ":";
      if (line.starts_with(start)) line = start + " { url: \"" + url + "\" }";
    }
    text += line + "\n";
  }
  return text;
}

std::string with_stores(const std::string& configuration, const std::string& old_url,
                        const std::string& new_url) {
  return with_stores(configuration, {{"old", old_url}, {"new", new_url}});
}

}  // namespace dlock::testkit

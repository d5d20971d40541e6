// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/house/arrows.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace dlock::house {
namespace {

namespace fs = std::filesystem;

/// A file's room, and the store whose folder it is in ("" if none).
struct Place {
  std::string room;
  std::string store;
};

bool is_source(const fs::path& file) {
  return file.extension() == ".cpp" || file.extension() == ".hpp";
}

std::optional<Place> place_of(const fs::path& file, const Plan& plan) {
  // A file beside a room's folder and with its name is the room's front door.
  for (auto folder = fs::path(file).replace_extension(); !folder.empty();
       folder = folder.parent_path()) {
    std::string store;
    fs::path room;
    for (const auto& part : folder) {
      const bool names_store = store.empty() && room == "backends";
      if (names_store) store = part.string();
      room /= names_store ? fs::path("*") : part;
    }
    if (plan.rooms.count(room.string()) != 0) return Place{room.string(), store};
  }
  return std::nullopt;
}

/// All sources of rooms, as paths below `root`.
std::vector<fs::path> sources(const fs::path& root, const Plan& plan) {
  std::set<fs::path> tops;
  for (const auto& room : plan.rooms) tops.insert(*fs::path(room).begin());
  std::vector<fs::path> all;
  for (const auto& top : tops) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.is_regular_file() && is_source(entry.path())) {
        all.push_back(fs::relative(entry.path(), root));
      }
    }
  }
  return all;
}

/// The header that `text` means in `file`; nothing if it is none of the project's.
std::optional<fs::path> resolve(const fs::path& root, const fs::path& file,
                                const std::string& text) {
  for (const auto& from : {fs::path(), fs::path("include"), file.parent_path()}) {
    const auto header = (from / text).lexically_normal();
    if (fs::exists(root / header)) return header;
  }
  return std::nullopt;
}

}  // namespace

Plan read_plan(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  Plan plan;
  const std::regex form(R"((owed )?([a-z_/*]+):((?: [a-z_/*]+)*))");
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    std::smatch parts;
    if (!std::regex_match(line, parts, form)) {
      throw std::runtime_error(
          fmt::format("{}:{}: '{}' is not '[owed ]ROOM: ROOM...'", file.string(), number, line));
    }
    if (!parts[1].matched && !plan.rooms.insert(parts[2]).second) {
      throw std::runtime_error(
          fmt::format("{}:{}: {} stands there twice", file.string(), number, parts[2].str()));
    }
    std::istringstream to(parts[3]);
    for (std::string room; to >> room;) plan.arrows.emplace(parts[2], room);
  }
  for (const auto& [from, to] : plan.arrows) {
    for (const auto& room : {from, to}) {
      if (plan.rooms.count(room) == 0) {
        throw std::runtime_error(fmt::format("{}: {} is no room", file.string(), room));
      }
    }
  }
  return plan;
}

Finding follow_includes(const fs::path& root, const Plan& plan) {
  Finding finding;
  const std::regex include(R"re(^\s*#\s*include\s*"([^"]+)".*)re");
  for (const auto& file : sources(root, plan)) {
    const auto here = place_of(file, plan);
    if (!here) {
      finding.wrong.push_back(file.string() + " is in no room");
      continue;
    }
    finding.inhabited.insert(here->room);
    std::ifstream in(root / file);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch parts;
      if (!std::regex_match(line, parts, include)) continue;
      const auto header = resolve(root, file, parts[1]);
      if (!header) continue;
      const auto there = place_of(*header, plan);
      if (there && there->room == "include/dlock") continue;
      const bool same_store = !there || there->store.empty() || there->store == here->store;
      if (there && same_store) {
        const Arrow arrow{here->room, there->room};
        if (arrow.first == arrow.second) continue;
        if (plan.arrows.count(arrow) != 0) {
          finding.used.insert(arrow);
          continue;
        }
      }
      finding.wrong.push_back(fmt::format("{}:{} includes {}: {} may not include {}", file.string(),
                                          number, header->string(), here->room,
                                          there ? there->room : "what is in no room"));
    }
  }
  return finding;
}

std::map<std::string, std::set<std::string>> units(const fs::path& root, const Plan& plan) {
  std::map<std::string, std::set<std::string>> all;
  for (const auto& file : sources(root, plan)) {
    all[file.parent_path().string()].insert(file.stem().string());
  }
  return all;
}

}  // namespace dlock::house

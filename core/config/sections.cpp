// SPDX-License-Identifier: Apache-2.0
#include "core/config/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "dlock/duration.hpp"
#include "dlock/options.hpp"
#include "dlock/semaphore.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

constexpr std::array<std::string_view, 6> kSectionKeys{"type", "lock",  "locks",
                                                       "wait", "limit", "permits"};
/// In the order of LockType; the last one is a semaphore with one permit.
constexpr std::array<std::string_view, 6> kTypeWords{"mutex",     "read",  "write",
                                                     "semaphore", "multi", "semaphore_mutex"};
constexpr std::string_view kSemaphoreMutex = kTypeWords.back();

/// Which lock it is of.
std::string locks_error(const Section& section) {
  if (section.type != LockType::multi) {
    if (!section.locks.empty()) {
      return fmt::format("`locks` are of type multi; type {} has one: write `lock`",
                         type_name(section.type));
    }
    return {};
  }
  if (!section.lock.empty()) return "type multi has several: write `locks` instead of `lock`";
  if (section.locks.empty()) return "type multi needs `locks`; write for example locks: [a, b]";
  for (auto name = section.locks.begin(); name != section.locks.end(); ++name) {
    if (std::find(section.locks.begin(), name, *name) != name) {
      return fmt::format("locks: '{}' is there twice; keep one", *name);
    }
  }
  return {};
}

std::string permits_error(const Section& section) {
  if (section.type != LockType::semaphore) {
    if (!section.limit && !section.permits) return {};
    return fmt::format(
        "`limit` and `permits` are of type semaphore; leave them out, or write it "
        "instead of {}",
        type_name(section.type));
  }
  const auto most = section.limit.value_or(kMostPermits);
  if (most == 0 || most > kMostPermits) {
    return fmt::format("limit: {}: a semaphore has 1 to {} permits", most, kMostPermits);
  }
  const auto permits = section.permits.value_or(1);
  if (permits != 0 && permits <= most) return {};
  return fmt::format("permits: {}: write 1 to {}", permits, most);
}

class SectionReader {
 public:
  explicit SectionReader(const YamlFile& file) : file_(file) {}

  SectionConfig read(const YamlFile::Entry& block) {
    SectionConfig read;
    read.name = block.key;
    read.origin = file_.origin(block.key_node);
    if (const auto wrong = name_error(block.key); !wrong.empty()) {
      file_.fail(block.key_node, fmt::format("sections: '{}': {}", block.key, wrong));
    }
    auto& section = read.section;
    bool one_permit = false;
    for (const auto& entry : file_.entries(block.value, fmt::format("section '{}'", block.key))) {
      if (entry.key == "type") {
        one_permit = type(entry, section);
      } else if (entry.key == "lock") {
        section.lock = name(entry.value, entry);
      } else if (entry.key == "locks") {
        section.locks = names(entry);
      } else if (entry.key == "wait") {
        section.wait = wait(entry);
      } else if (entry.key == "limit") {
        section.limit = number(entry);
      } else if (entry.key == "permits") {
        section.permits = number(entry);
      } else {
        file_.fail_unknown(entry, " of a section", kSectionKeys);
      }
    }
    if (one_permit) take_one_permit(block, section);
    if (const auto wrong = section_error(section); !wrong.empty()) {
      file_.fail(block.key_node, fmt::format("section '{}': {}", block.key, wrong));
    }
    return read;
  }

 private:
  /// True: a semaphore with one permit.
  bool type(const YamlFile::Entry& entry, Section& section) const {
    const auto word = file_.scalar(entry.value, "type");
    const auto* const found = std::find(kTypeWords.begin(), kTypeWords.end(), word);
    if (found == kTypeWords.end()) {
      file_.fail(entry.key_node, fmt::format("type: '{}' is no type of lock; {}", word,
                                             suggestion(word, kTypeWords)));
    }
    const bool one_permit = *found == kSemaphoreMutex;
    section.type =
        one_permit ? LockType::semaphore : static_cast<LockType>(found - kTypeWords.begin());
    return one_permit;
  }

  void take_one_permit(const YamlFile::Entry& block, Section& section) const {
    if (section.limit || section.permits) {
      file_.fail(block.key_node,
                 fmt::format("section '{}': type {} has one permit; leave out `limit` and "
                             "`permits`, or write type: semaphore",
                             block.key, kSemaphoreMutex));
    }
    section.limit = 1;
  }

  std::vector<std::string> names(const YamlFile::Entry& entry) const {
    if (!entry.value.IsSequence()) {
      file_.fail(entry.key_node, "locks: a list is expected here; write for example [a, b]");
    }
    std::vector<std::string> names;
    for (const auto& item : entry.value) names.push_back(name(item, entry));
    return names;
  }

  std::string name(const YAML::Node& node, const YamlFile::Entry& entry) const {
    auto name = file_.scalar(node, entry.key);
    if (const auto wrong = name_error(name); !wrong.empty()) {
      file_.fail(node, fmt::format("{}: '{}': {}", entry.key, name, wrong));
    }
    return name;
  }

  std::chrono::milliseconds wait(const YamlFile::Entry& entry) const {
    const auto text = file_.scalar(entry.value, "wait");
    if (text == "forever") return kWaitForever;
    const auto parsed = parse_duration(text);
    if (!parsed) file_.fail(entry.key_node, fmt::format("wait: '{}': {}", text, parsed.error));
    return *parsed.value;
  }

  std::uint32_t number(const YamlFile::Entry& entry) const {
    const auto text = file_.scalar(entry.value, entry.key);
    std::uint32_t value = 0;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) {
      file_.fail(entry.key_node, fmt::format("{}: '{}': write a number from 1 to {}", entry.key,
                                             text, kMostPermits));
    }
    return value;
  }

  const YamlFile& file_;
};

}  // namespace

std::string_view type_name(LockType type) noexcept {
  const auto at = static_cast<std::size_t>(type);
  return at < kTypeWords.size() - 1 ? kTypeWords.at(at) : "unknown";
}

std::string section_error(const Section& section) {
  if (type_name(section.type) == "unknown") return "it is of no type that there is";
  if (section.wait && section.wait->count() < 0) return "wait: it must not be negative";
  auto wrong = locks_error(section);
  return wrong.empty() ? permits_error(section) : wrong;
}

std::vector<SectionConfig> read_sections(const YamlFile& file, const YAML::Node& node) {
  std::vector<SectionConfig> all;
  SectionReader reader(file);
  for (const auto& entry : file.entries(node, "sections")) all.push_back(reader.read(entry));
  return all;
}

}  // namespace dlock::core

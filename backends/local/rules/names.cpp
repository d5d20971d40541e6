// SPDX-License-Identifier: Apache-2.0
#include "backends/local/rules/names.hpp"

#include <algorithm>

#include "dlock/spi/name.hpp"

namespace dlock::local {
namespace {

constexpr std::string_view kSuffix = ".lock";
constexpr std::string_view kNoteSuffix = ".note";
constexpr std::string_view kLineSuffix = ".line";  // the line for permits
constexpr std::string_view kPermitsSuffix = ".slot";
static_assert(kSuffix.size() == kNoteSuffix.size() && kSuffix.size() == kLineSuffix.size() &&
              kSuffix.size() == kPermitsSuffix.size());
constexpr std::string_view kHashMark = "%~";
constexpr std::size_t kLongest = 255 - kSuffix.size();  // NAME_MAX of all file systems we accept
constexpr std::size_t kKept = 100;  // bytes of a too long name that stay readable for people

// UTF-8 stays readable in `ls`; what a shell would trip over does not.
bool is_plain(unsigned char byte) {
  constexpr std::string_view kMarks = "-_.,+=@:";
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte >= 0x80 ||
         kMarks.find(static_cast<char>(byte)) != std::string_view::npos;
}

std::string escaped(std::string_view lock_name) {
  const bool plain = std::all_of(lock_name.begin(), lock_name.end(),
                                 [](char c) { return is_plain(static_cast<unsigned char>(c)); });
  auto text = plain ? std::string(lock_name) : percent_escape(lock_name, is_plain);
  // Other files of dlock begin with a dot.
  if (text.front() == '.') text.replace(0, 1, "%2E");
  return text;
}

// A cut that halves neither an escape nor a UTF-8 character.
std::string_view beginning(std::string_view text) {
  auto end = std::min(kKept, text.size());
  const auto percent = text.rfind('%', end - 1);
  if (percent != std::string_view::npos && percent + 3 > end) end = percent;
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

std::string named(std::string_view lock_name, std::string_view suffix) {
  auto text = escaped(lock_name);
  if (text.size() > kLongest) {
    std::string hashed(beginning(text));
    hashed += kHashMark;
    hashed += sha256_hex(lock_name);
    text = std::move(hashed);
  }
  return text += suffix;
}

}  // namespace

std::string file_name(std::string_view lock_name) { return named(lock_name, kSuffix); }

std::string note_file_name(std::string_view key) { return named(key, kNoteSuffix); }

std::string semaphore_file_name(std::string_view name) { return named(name, kLineSuffix); }

std::string permits_file_name(std::string_view name) { return named(name, kPermitsSuffix); }

bool is_lock_file_name(std::string_view file) {
  return file.size() > kSuffix.size() && file.ends_with(kSuffix) && file.front() != '.';
}

std::optional<std::string> lock_name(std::string_view file) {
  if (!is_lock_file_name(file) || file.find(kHashMark) != std::string_view::npos) return {};
  auto name = percent_unescape(file.substr(0, file.size() - kSuffix.size()));
  // A foreign file may unescape to a name; only a lock file's name escapes back to itself.
  if (name.empty() || file_name(name) != file) return {};
  return name;
}

bool has_prefix(std::string_view lock_name, std::string_view prefix) {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty() || lock_name == prefix) return true;
  return lock_name.size() > prefix.size() && lock_name.starts_with(prefix) &&
         lock_name[prefix.size()] == '/';
}

namespace {

constexpr std::string_view kOfALock = ".lock";
constexpr std::string_view kOfAnAsking = ".ask";

std::string renamed(std::string_view file, std::string_view from, std::string_view to) {
  if (!file.ends_with(from)) return {};
  return std::string(file.substr(0, file.size() - from.size())).append(to);
}

}  // namespace

std::string ask_file_name(std::string_view lock_file) {
  return renamed(lock_file, kOfALock, kOfAnAsking);
}

std::string lock_file_asked(std::string_view file) { return renamed(file, kOfAnAsking, kOfALock); }

std::string line_file_of_permits(std::string_view permits_file) {
  if (permits_file.front() == '.') return {};
  return renamed(permits_file, kPermitsSuffix, kLineSuffix);
}

std::optional<std::string> semaphore_name(std::string_view permits_file) {
  return lock_name(renamed(permits_file, kPermitsSuffix, kSuffix));
}

}  // namespace dlock::local

// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/server_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/memcached/rules/lease.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::memcached {
namespace {

constexpr std::string_view kListStamp = "v=";
constexpr unsigned kListFormat = 1;
constexpr std::size_t kLongestList = 512;
constexpr std::chrono::minutes kShortestNote{10};

}  // namespace

std::string server_note(const std::vector<Endpoint>& servers, std::size_t place,
                        std::string_view label, std::string_view distribution) {
  auto note =
      fmt::format("{}{} server {} of {}", kListStamp, kListFormat, place + 1, servers.size());
  if (servers.size() < 2) return note;
  // Programs from before the option write the note of `sha256`.
  if (distribution != "sha256") note += fmt::format(", distribution={}", distribution);
  if (!label.empty()) return fmt::format("{}, list '{}'", note, label);
  std::string list;
  for (const auto& server : servers) {
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", server.host, server.port);
  }
  if (list.size() > kLongestList) list = "sha256 " + sha256_hex(list);
  return fmt::format("{}: {}", note, list);
}

std::string newer_note(std::string_view key, std::string_view note) {
  return newer_format(key, note, kListStamp, kListFormat);
}

std::time_t note_exptime(std::chrono::milliseconds lease) {
  const auto twice = std::chrono::ceil<std::chrono::seconds>(2 * lease);
  const auto longest = std::chrono::ceil<std::chrono::seconds>(kLongestLease);
  const std::chrono::seconds shortest = kShortestNote;
  return static_cast<std::time_t>(std::clamp(twice, shortest, longest).count());
}

std::string other_note(std::string_view address, std::string_view key, std::string_view ours,
                       std::string_view theirs, std::time_t exptime) {
  // Any client may have written it.
  std::string shown(theirs.substr(0, 2 * kLongestList));
  for (auto& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return fmt::format(
      "{}: here it is '{}', for other clients it is '{}': one lock would be on two servers, with "
      "two holders. Use the same servers, order and distribution in all clients "
      "(server_list=LABEL, the same everywhere, where their addresses differ). To change the list "
      "on purpose, stop all clients, and wait {} s, or delete the key {} on each server",
      address, ours, shown, exptime, key);
}

}  // namespace dlock::memcached

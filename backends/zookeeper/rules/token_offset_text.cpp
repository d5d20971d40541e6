// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/token_offset_text.hpp"

#include <charconv>

#include "dlock/sequencer.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::zookeeper {
namespace {

/// Old offsets belong to locks that were not held for a long time.
constexpr std::size_t kMostOffsets = 64;
constexpr std::string_view kFirstWord = "v=1";
constexpr std::string_view kOffsetStamp = "v=";
constexpr unsigned kOffsetFormat = 1;

}  // namespace

std::optional<std::vector<std::uint64_t>> parse_offsets(std::string_view text) {
  std::vector<std::uint64_t> offsets{0};
  if (text.empty()) return offsets;
  if (!text.starts_with(kFirstWord)) return {};
  text.remove_prefix(kFirstWord.size());
  while (!text.empty()) {
    if (text.front() != ' ') return {};
    text.remove_prefix(1);
    std::uint64_t offset = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, offset);
    if (error != std::errc() || offset <= offsets.back() || offset >= kTokenEnd) return {};
    offsets.push_back(offset);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  }
  return offsets;
}

std::string newer_offsets(std::string_view node, std::string_view text) {
  return newer_format(node, text, kOffsetStamp, kOffsetFormat);
}

std::string write_offsets(const std::vector<std::uint64_t>& offsets) {
  std::string text(kFirstWord);
  const auto skipped = offsets.size() > kMostOffsets ? offsets.size() - kMostOffsets : 0;
  for (auto i = skipped; i < offsets.size(); ++i) {
    if (offsets[i] == 0) continue;
    text += ' ';
    text += std::to_string(offsets[i]);
  }
  return text;
}

}  // namespace dlock::zookeeper

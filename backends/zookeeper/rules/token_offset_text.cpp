// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/token_offset_text.hpp"

#include <charconv>

#include "dlock/sequencer.hpp"

namespace dlock::zookeeper {
namespace {

/// Old ones are of locks that nobody has held for long.
constexpr std::size_t kMostOffsets = 64;

}  // namespace

std::optional<std::vector<std::uint64_t>> parse_offsets(std::string_view text) {
  std::vector<std::uint64_t> offsets{0};
  while (!text.empty()) {
    std::uint64_t offset = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, offset);
    if (error != std::errc() || offset <= offsets.back() || offset >= kTokenEnd) return {};
    offsets.push_back(offset);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (text.empty()) break;
    if (text.front() != ' ') return {};
    text.remove_prefix(1);
    if (text.empty()) return {};
  }
  return offsets;
}

std::string write_offsets(const std::vector<std::uint64_t>& offsets) {
  std::string text;
  const auto skipped = offsets.size() > kMostOffsets ? offsets.size() - kMostOffsets : 0;
  for (auto i = skipped; i < offsets.size(); ++i) {
    if (offsets[i] == 0) continue;
    if (!text.empty()) text += ' ';
    text += std::to_string(offsets[i]);
  }
  return text;
}

}  // namespace dlock::zookeeper

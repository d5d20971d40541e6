// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzers share. Each is one file with LLVMFuzzerTestOneInput(): it gives bytes that we
// did not write to one parser, and states what has to hold of whatever comes out. Inputs are texts
// where they can be, so that a corpus can be read and written by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::fuzz {

/// Ends the run, as a crash does: libFuzzer keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // NOLINT: bytes as characters
}

/// Takes the text up to `mark` off the front; all of it if there is none.
inline std::string_view take_until(std::string_view& text, char mark) {
  const auto end = text.find(mark);
  const auto taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(take_until(text, '\n'));
  return lines;
}

}  // namespace dlock::fuzz

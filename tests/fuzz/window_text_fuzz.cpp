// SPDX-License-Identifier: Apache-2.0
//
// The window of a migration in mode dual, as a store hands it to us that others can write to; and
// what programs then do with it. Input: the text.
#include <algorithm>

#include "dlock/sequencer.hpp"
#include "migration/dual/window.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

namespace moves = core::migration;

void check_text(const moves::Window& window) {
  const auto text = moves::to_text(window);
  require(text.size() <= moves::kLongestWindow, "a window fits a note");
  require(moves::parse_window(text) == window, "a window is read back");
}

void check_rules(const moves::Window& window) {
  require(window.lo <= window.hi && window.hi <= window.lo + 1 && window.hi <= moves::kLastPhase,
          "one phase is admitted, or two neighbours");
  require(window.programs.size() <= moves::kMostPrograms, "not more programs than a note may have");
  require(std::is_sorted(window.programs.begin(), window.programs.end(),
                         [](const auto& a, const auto& b) { return a.id < b.id; }),
          "programs are in order");
  require(window.highest_token() < kTokenEnd, "a token is one");
  require(window.highest_token() >= window.floor, "no token below the floor");
  for (const auto& program : window.programs) {
    require(window.find(program.id) != nullptr, "whoever is here is found");
    require(program.beat <= window.seq, "no beat is later than the last change");
    require(!moves::describe(program).empty(), "a program has words");
  }
  for (const auto& program : moves::laggards(window)) {
    require(!window.admits(program.phase), "who is behind is not admitted");
  }
}

/// Somebody comes, in each phase, says something of himself, renews and leaves.
void check_changes(const moves::Window& before, std::string_view words) {
  for (int phase = 0; phase <= moves::kLastPhase; ++phase) {
    auto window = before;
    moves::Program program;
    program.id = "01234567-89ab";
    program.phase = phase;
    program.pid = -1;
    program.host = std::string(words);
    program.app = std::string(words);
    const auto entry = moves::enter(window, program);
    if (entry != moves::Entry::entered) {
      require(window == before, "nothing is changed by who does not get in");
      continue;
    }
    require(window.admits(phase), "only admitted phases get in");
    require(window.seq > before.seq, "each change is counted");
    check_text(window);
    require(moves::renew(window, program.id, kTokenEnd - 1), "who is here renews");
    check_text(window);
    const auto highest = window.highest_token();
    require(moves::leave(window, program.id), "who is here leaves");
    require(window.highest_token() == highest, "tokens are not forgotten with who had them");
    require(window.find(program.id) == nullptr, "who has left is not here");
    check_text(window);
  }
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace moves = dlock::core::migration;
  const auto text = dlock::fuzz::as_text(data, size);
  std::string why;
  const auto window = moves::parse_window(text, &why);
  if (!window) {
    dlock::fuzz::require(!why.empty(), "an error says why");
    return 0;
  }
  dlock::fuzz::require(moves::to_text(*window) == text, "one window has one text");
  dlock::fuzz::check_rules(*window);
  // A counter at its end is nobody's concern: it would take tens of thousands of years.
  if (window->seq < 999'999'999'000) dlock::fuzz::check_changes(*window, text.substr(0, 40));
  return 0;
}

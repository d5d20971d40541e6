// SPDX-License-Identifier: Apache-2.0
//
// Records and plans, as a store hands them to us that others can write to. Input: the text.
#include "core/config/routes.hpp"
#include "core/spi/word.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/spi/name.hpp"
#include "migration/plan.hpp"
#include "migration/policy/sealed.hpp"
#include "migration/record.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

namespace moves = core::migration;

void check_record(std::string_view text) {
  std::string why;
  const auto record = moves::parse_record(text, &why);
  for (const bool is_finished : {false, true}) {
    const auto failure = moves::sealed_failure(text, "orders/42", "zk", is_finished);
    require(static_cast<bool>(failure.error), "a sealed lock is an error, never a grant");
  }
  if (!record) return require(!why.empty(), "an error says why");
  require(moves::to_text(*record) == text, "one record has one text");
  require(record->floor < kTokenEnd, "a floor is a token");
  require(core::is_word(record->target) && core::is_word(record->plan), "names are names");
  const auto next = moves::next_record(*record, moves::MoveState::closing, 7);
  require(!(next.gen == record->gen), "a change has another generation");
}

void check_plan(std::string_view text) {
  std::string why;
  const auto plan = moves::parse_plan(text, &why);
  if (!plan) return require(!why.empty(), "an error says why");
  require(moves::to_text(*plan) == text, "one plan has one text");
  require(!plan->patterns.empty(), "a plan has a pattern");
  for (const auto& pattern : plan->patterns) {
    require(core::pattern_error(pattern).empty(), "a pattern is one");
    require(!name_error(pattern).empty() || plan->has(pattern), "an exact name is in its plan");
  }
  require(!plan->is_leased() || core::is_word(plan->gate), "a gate is in a store");
}

void check_list(std::string_view text) {
  const auto entries = moves::parse_list(text);
  if (!entries) return;
  require(moves::parse_list(moves::list_text(*entries)) == entries, "a list is read back");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = dlock::fuzz::as_text(data, size);
  dlock::fuzz::check_record(text);
  dlock::fuzz::check_plan(text);
  dlock::fuzz::check_list(text);
  dlock::fuzz::check_list("dlock-plans1\n" + std::string(text));
  return 0;
}

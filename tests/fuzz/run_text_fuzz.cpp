// SPDX-License-Identifier: Apache-2.0
//
// What stands in a store of the last scheduled run. Input: the text.
#include <boost/json.hpp>

#include "cli/output/last_run.hpp"
#include "core/schedule/record.hpp"
#include "core/schedule/rules.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using std::chrono::milliseconds;

void check_run(const RunRecord& run) {
  const auto written = core::to_text(run);
  const auto again = core::parse_run(written);
  require(again && core::to_text(*again) == written, "it is read back as it was written");
  require(!cli::how_it_went(run).empty(), "it can be shown");
  const auto shown = boost::json::serialize(cli::run_value(run));
  require(shown.find('\n') == shown.npos, "it is one line of JSON");
  ScheduleOptions options;
  options.at_most_for = milliseconds(60'000);
  if (run.every.count() > 1) options.every = run.every;
  options.offset = run.offset;
  options.early = run.early;
  const auto next = run.next_possible();
  require(core::refusal(run, next, options) == RunRefusal::Reason::none, "then another may run");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  const auto text = fuzz::as_text(data, size);
  if (const auto run = core::parse_run(text)) fuzz::check_run(*run);
  if (const auto run = core::parse_run("dlock-run1\n" + std::string(text))) fuzz::check_run(*run);
  return 0;
}

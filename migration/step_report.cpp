// SPDX-License-Identifier: Apache-2.0
#include "migration/step_report.hpp"

#include <fmt/format.h>

#include "dlock/lock_status.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core::migration {

StepReport report_of(std::string name, Verdict verdict, std::string text) {
  StepReport report;
  report.name = std::move(name);
  report.verdict = verdict;
  report.text = std::move(text);
  return report;
}

StepReport failure_report(std::string name, bool refused, const std::string& store, error_code ec,
                          const Failure& failure) {
  auto text = fmt::format("the store '{}': {}", store, ec.message());
  if (!failure.text.empty()) text += fmt::format(": {}", failure.text);
  return report_of(std::move(name), refused ? Verdict::refused : Verdict::unreachable,
                   std::move(text));
}

std::string describe(const Owner& owner) {
  if (owner.pid == 0) return owner.id;
  return fmt::format("{} ({} on {})", owner.app.empty() ? "a process" : owner.app, pid_words(owner),
                     owner.host);
}

}  // namespace dlock::core::migration

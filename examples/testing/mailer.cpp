// SPDX-License-Identifier: Apache-2.0
#include "mailer.hpp"

#include <chrono>

Mailer::Report Mailer::send(const std::vector<std::string>& letters) {
  dlock::Diagnostics why;
  dlock::error_code error;
  dlock::AcquireOptions options;
  options.wait = std::chrono::milliseconds(100);
  options.diagnostics = &why;
  auto held = lock_->acquire(options, {}, error);
  if (error == dlock::errc::timed_out) return {Outcome::not_our_turn};
  if (error) return {Outcome::failed, 0, error.message() + ": " + why.server_text};

  Report report{Outcome::sent};
  for (const auto& letter : letters) {
    held.check(error);
    if (error) return {Outcome::lock_lost, report.sent};
    post_.send(letter, held.token().value());
    ++report.sent;
  }
  // Whoever took over may have sent the last one once more.
  if (held.release() == dlock::errc::lock_lost) report.outcome = Outcome::lock_lost;
  return report;
}

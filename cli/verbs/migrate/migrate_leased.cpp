// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_leased.hpp"

#include <chrono>

#include "cli/output/migrate_leased_output.hpp"
#include "program/output.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using program::Exit;
using program::print_line;
using program::status;

std::int64_t wall_clock_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

int print(const Arguments& arguments, const moves::LeasedPlanReport& report) {
  print_line(arguments.json ? to_json(report) : to_text(report));
  return status(report.objections.empty() ? Exit::ok : Exit::migrate_refused);
}

int print(const Arguments& arguments, const moves::LeasedStepReport& step) {
  print_line(arguments.json ? to_json(step, wall_clock_ms()) : to_text(step));
  return status(exit_of(step.report.verdict));
}

void check_leased_options(const Arguments& arguments) {
  if (!arguments.names.empty()) {
    throw moves::Misuse{"--name: with a gate, a step is of the whole plan; leave it out"};
  }
  if (arguments.target_gone) {
    throw moves::Misuse{
        "--target-gone is for a plan without a gate; stop all programs, wait for the longest "
        "lease, and start them with the store that is left"};
  }
}

}  // namespace

int migrate_leased(MigrateSession& session, const Arguments& arguments) {
  check_leased_options(arguments);
  auto& admin = session.admin().leased();
  const auto step = [&](moves::Goal goal) {
    return print(arguments, session.run<moves::LeasedStepReport>(
                                [&] { return admin.step(step_request(arguments, goal)); }));
  };
  switch (arguments.verb) {
    case Verb::migrate_plan:
      return print(arguments, session.run<moves::LeasedPlanReport>(
                                  [&] { return admin.plan(start_request(arguments).plan); }));
    case Verb::migrate_start: {
      const auto start = session.run<moves::LeasedAdmin::Start>(
          [&] { return admin.start(start_request(arguments)); });
      return start.refused ? print(arguments, *start.refused) : print(arguments, start.step);
    }
    case Verb::migrate_status: {
      const auto report = session.run<moves::LeasedStatus>([&] { return admin.status(); });
      print_line(arguments.json ? to_json(report, wall_clock_ms())
                                : to_text(report, wall_clock_ms()));
      return status(Exit::ok);
    }
    case Verb::migrate_advance:
      return step(moves::Goal::advance);
    case Verb::migrate_rollback:
      return step(moves::Goal::rollback);
    case Verb::migrate_finish:
      return step(moves::Goal::finish);
    default:
      break;
  }
  return status(Exit::usage);
}

}  // namespace dlock::cli

// SPDX-License-Identifier: Apache-2.0
//
// dlock migrate plan|start|status|advance|rollback|finish: what is done is migration/admin.hpp's;
// here are the words, and the exit status.
#include <fmt/format.h>

#include <chrono>

#include "cli/output/migrate_output.hpp"
#include "cli/verbs/commands.hpp"
#include "cli/verbs/migrate/migrate_leased.hpp"
#include "cli/verbs/migrate/migrate_session.hpp"
#include "program/output.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using program::complain;
using program::Exit;
using program::print_line;
using program::status;

template <class Report>
void print(const Arguments& arguments, const Report& report) {
  print_line(arguments.json ? to_json(report) : to_text(report));
}

int plan(MigrateSession& session, const Arguments& arguments) {
  const auto report = session.run<moves::PlanReport>(
      [&] { return session.admin().move().plan(start_request(arguments).plan); });
  print(arguments, report);
  return status(report.objections.empty() ? Exit::ok : Exit::migrate_refused);
}

int start(MigrateSession& session, const Arguments& arguments) {
  const auto report = session.run<moves::PlanReport>(
      [&] { return session.admin().move().start(start_request(arguments)); });
  print(arguments, report);
  return status(report.started ? Exit::ok : Exit::migrate_refused);
}

int show(MigrateSession& session, const Arguments& arguments) {
  const auto report =
      session.run<moves::PlanStatus>([&] { return session.admin().move().status(); });
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  print_line(arguments.json ? to_json(report, now_ms) : to_text(report, now_ms));
  return status(Exit::ok);
}

int step(MigrateSession& session, const Arguments& arguments, moves::Goal goal) {
  if (!arguments.all && arguments.names.empty()) {
    if (goal == moves::Goal::finish) {
      throw moves::Misuse{
          fmt::format("plan '{0}' is finished as a whole; write `dlock migrate finish {0} --all`",
                      arguments.plan)};
    }
    throw moves::Misuse{"say which locks: --all, or --name NAME"};
  }
  const auto report = session.run<moves::StepsReport>(
      [&] { return session.admin().move().step(step_request(arguments, goal)); });
  print(arguments, report);
  return status(exit_of(moves::verdict_on(report.steps)));
}

void check_options(const Arguments& arguments) {
  if (!arguments.legacy_gone && arguments.at.empty() && !arguments.gate_lease) return;
  throw moves::Misuse{
      fmt::format("--legacy-gone, --at and --gate-lease are for a plan with a gate; write `gate: "
                  "STORE` beside `plan: {}`, or leave them out",
                  arguments.plan)};
}

int dispatch(const Arguments& arguments) {
  MigrateSession session(arguments);
  if (session.admin().is_leased()) return migrate_leased(session, arguments);
  check_options(arguments);
  switch (arguments.verb) {
    case Verb::migrate_plan:
      return plan(session, arguments);
    case Verb::migrate_start:
      return start(session, arguments);
    case Verb::migrate_status:
      return show(session, arguments);
    case Verb::migrate_advance:
      return step(session, arguments, moves::Goal::advance);
    case Verb::migrate_rollback:
      return step(session, arguments, moves::Goal::rollback);
    case Verb::migrate_finish:
      return step(session, arguments, moves::Goal::finish);
    default:
      break;
  }
  return status(Exit::usage);
}

}  // namespace

int migrate(const Arguments& arguments) {
  try {
    return dispatch(arguments);
  } catch (const moves::Refusal& refusal) {
    complain(refusal.why);
    return status(Exit::migrate_refused);
  } catch (const moves::Misuse& misuse) {
    complain(misuse.why);
    return status(Exit::usage);
  } catch (const Interrupted& interrupted) {
    complain("stopped; what was done is done, run it again to go on");
    return program::signal_status(interrupted.signal);
  }
}

}  // namespace dlock::cli

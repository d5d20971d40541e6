// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_dual.hpp"

#include <fmt/format.h>

#include <chrono>

#include "cli/output/migrate_dual_output.hpp"
#include "program/output.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using program::Exit;
using program::print_line;
using program::status;

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void check_options(const moves::DualAdmin& dual, const Arguments& arguments) {
  const bool starts = arguments.verb == Verb::migrate_plan || arguments.verb == Verb::migrate_start;
  if (!starts && !arguments.names.empty()) {
    throw moves::Misuse{"--name: in mode dual a step is of the whole plan; leave it out"};
  }
  if (arguments.target_gone) {
    throw moves::Misuse{
        "--target-gone is of mode move; in mode dual stop all programs, wait for the longest "
        "lease, and start them with the store that is left"};
  }
  if (arguments.mode == "move") {
    throw moves::Misuse{
        fmt::format("--mode move: the route of plan '{}' has `mode: dual`; write one of "
                    "them otherwise",
                    arguments.plan)};
  }
  if (!arguments.window_store.empty() && arguments.window_store != dual.window()) {
    // Programs find it by their route alone.
    throw moves::Misuse{
        fmt::format("--window {0}: the route of plan '{1}' does not say so; write "
                    "`window: {0}` beside `plan: {1}`, in every program",
                    arguments.window_store, arguments.plan)};
  }
}

/// One verb on one plan.
class Dual {
 public:
  Dual(MigrateSession& session, const Arguments& arguments)
      : session_(session), dual_(session.admin().dual()), arguments_(arguments) {}

  int plan() {
    return tell(session_.run<moves::DualPlanReport>(
        [&] { return dual_.plan(start_request(arguments_).plan); }));
  }

  int start() {
    const auto start = session_.run<moves::DualAdmin::Start>(
        [&] { return dual_.start(start_request(arguments_)); });
    return start.refused ? tell(*start.refused) : tell(start.step);
  }

  int show() {
    const auto report = session_.run<moves::DualStatus>([&] { return dual_.status(); });
    print_line(arguments_.json ? to_json(report, now_ms()) : to_text(report, now_ms()));
    return status(Exit::ok);
  }

  int step(moves::Goal goal) {
    return tell(session_.run<moves::DualStepReport>(
        [&] { return dual_.step(step_request(arguments_, goal)); }));
  }

 private:
  int tell(const moves::DualPlanReport& report) const {
    print_line(arguments_.json ? to_json(report) : to_text(report));
    return status(report.objections.empty() ? Exit::ok : Exit::migrate_refused);
  }
  int tell(const moves::DualStepReport& step) const {
    print_line(arguments_.json ? to_json(step, now_ms()) : to_text(step));
    return status(exit_of(step.report.verdict));
  }

  MigrateSession& session_;
  moves::DualAdmin& dual_;
  const Arguments& arguments_;
};

}  // namespace

int migrate_dual(MigrateSession& session, const Arguments& arguments) {
  check_options(session.admin().dual(), arguments);
  Dual dual(session, arguments);
  switch (arguments.verb) {
    case Verb::migrate_plan:
      return dual.plan();
    case Verb::migrate_start:
      return dual.start();
    case Verb::migrate_status:
      return dual.show();
    case Verb::migrate_advance:
      return dual.step(moves::Goal::advance);
    case Verb::migrate_rollback:
      return dual.step(moves::Goal::rollback);
    case Verb::migrate_finish:
      return dual.step(moves::Goal::finish);
    default:
      break;
  }
  return status(Exit::usage);
}

}  // namespace dlock::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_session.hpp"

#include <poll.h>
#include <unistd.h>

#include "cli/open.hpp"
#include "program/output.hpp"

namespace dlock::cli {

namespace moves = core::migration;
using moves::Verdict;
using program::Exit;

namespace {

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

MigrateSession::MigrateSession(const Arguments& arguments)
    : signals_{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
      admin_(load_config(arguments), open_options(), arguments.plan,
             [](const std::string& line) { program::complain(line); }) {}

int MigrateSession::wait_for_end(Wake& done) {
  int first = 0;
  while (true) {
    wait_for({signals_.descriptor(), done.descriptor()}, std::nullopt);
    while (const auto signal = signals_.next()) {
      if (!program::ends_a_wait(signal->number)) continue;
      // A question leaves nothing behind. Asked again while we clean up: the store will do it when
      // our lease is over.
      if (first != 0 || !admin_.stop()) ::_exit(program::signal_status(signal->number));
      first = signal->number;
    }
    if (is_readable(done.descriptor())) return first;
  }
}

Exit exit_of(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::done:
      return Exit::ok;
    case Verdict::waiting:
      return Exit::migrate_waits;
    case Verdict::refused:
      return Exit::migrate_refused;
    case Verdict::unreachable:
    case Verdict::stopped:
      break;
  }
  return Exit::unavailable;
}

moves::StartRequest start_request(const Arguments& arguments) {
  moves::StartRequest request;
  request.plan.max_lease = arguments.max_lease;
  request.plan.gate_lease = arguments.gate_lease;
  request.with_strangers = arguments.yes;
  if (!arguments.at.empty()) {
    request.at = arguments.at == "S" ? moves::LeasedState::source : moves::LeasedState::target;
  }
  request.wait = arguments.wait.value_or(moves::kDefaultWait);
  return request;
}

moves::StepRequest step_request(const Arguments& arguments, moves::Goal goal) {
  moves::StepRequest request;
  request.goal = goal;
  request.all = arguments.all;
  request.names = arguments.names;
  request.wait = arguments.wait.value_or(moves::kDefaultWait);
  request.target_gone = arguments.target_gone;
  request.withdraw = arguments.withdraw;
  request.strangers_gone = arguments.yes;
  request.legacy_gone = arguments.legacy_gone;
  return request;
}

}  // namespace dlock::cli

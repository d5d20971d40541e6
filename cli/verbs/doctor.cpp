// SPDX-License-Identifier: Apache-2.0
//
// `dlock doctor`: every store alone, so that each has its own time and one that is down hides none.
#include <chrono>
#include <utility>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::Exit;
using program::exit_of;
using program::print_line;
using program::warn;

namespace {

/// The configuration of one store: itself, and the routes that lead to it (with their `require`).
Config only(const Config& config, const StoreConfig& store) {
  Config one;
  one.stores.push_back(store);
  for (const auto& route : config.locks) {
    if (route.store == store.name) one.locks.push_back(route);
  }
  return one;
}

/// Of a store whose secret or URL is not where it should be.
StoreFinding not_usable(const Config& config, const LockError& error) {
  StoreFinding finding;
  finding.report.name = config.stores.front().name;
  finding.report.error = error.code();
  finding.report.message = error.server_text();
  return finding;
}

/// Warns of programs that lock on the store by routes that the configuration does not have.
void compare_routes(LockManager& locks, const Config& config, const std::string& store) {
  try {
    for (const auto& conflict : locks.route_conflicts(config, store)) warn(conflict);
  } catch (
      const LockError&) {  // NOLINT(bugprone-empty-catch): the report says what the store lacks
  }
}

/// A wrong answer replaces the error of an unmet `require`.
void test_servers(LockManager& locks, StoreFinding& finding) {
  auto& report = finding.report;
  try {
    finding.self_tests = locks.self_test(report.name);
  } catch (const LockError&) {  // NOLINT(bugprone-empty-catch): it was reached a moment ago
  }
  for (const auto& tested : finding.self_tests) {
    auto text = tested.failure_text();
    if (text.empty()) continue;
    report.error = make_error_code(errc::config_unsafe);
    report.message = std::move(text);
  }
}

/// `config`: one store of `whole`.
StoreFinding examine(const Config& config, const Config& whole) try {
  LockManager locks = LockManager::from_config(config, open_options());
  const auto start = BoottimeClock::now();
  auto reports = locks.inspect();
  const auto took = std::chrono::round<std::chrono::milliseconds>(BoottimeClock::now() - start);
  StoreFinding finding{std::move(reports.at(0)), took};
  if (!finding.report.reached) return finding;
  test_servers(locks, finding);
  compare_routes(locks, whole, finding.report.name);
  return finding;
} catch (const MissingReference& error) {
  return not_usable(config, error);
}

/// A store that is refused weighs more than one that is down: the first will not heal by itself.
int status_of(const std::vector<StoreFinding>& findings) {
  Exit worst = Exit::ok;
  for (const auto& finding : findings) {
    const Exit code = exit_of(finding.report.error);
    if (worst == Exit::ok || code == Exit::config) worst = code;
  }
  return status(worst);
}

}  // namespace

int doctor(const Arguments& arguments) {
  Config config = load_config(arguments);
  be_impatient(config);
  for (const auto& warning : config.warnings) warn(warning);
  std::vector<StoreFinding> findings;
  for (const auto& store : config.stores) {
    findings.push_back(examine(only(config, store), config));
  }
  print_line(arguments.json ? to_json(findings) : to_text(findings));
  return status_of(findings);
}

}  // namespace dlock::cli

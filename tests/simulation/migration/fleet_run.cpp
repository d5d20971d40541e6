// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/fleet_run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::simulation::migration {

FleetRun::FleetRun(std::uint64_t seed, bool tracing) : world_(seed, tracing), recorder_(world_) {
  world_.on_step([this](Process& process) {
    recorder_.look_at(process);
    stepped();
  });
}

void FleetRun::begin(FleetProgram& program) {
  programs_.push_back(&program);
  program.start();
}

void FleetRun::crash(FleetProgram& program) {
  program.crash();
  ++crashes_;
}

bool FleetRun::all_idle() const {
  return std::all_of(programs_.begin(), programs_.end(), [](const FleetProgram* program) {
    return !program->is_alive() || program->is_idle();
  });
}

TimePoint FleetRun::work_in_calm() {
  const auto patience = world_.now() + seconds(40);
  const auto before = recorder_.acquisitions();
  // Longer than a client of the target alone goes without reading of plans.
  const auto least = world_.now() + seconds(12);
  while (world_.now() < patience &&
         (world_.now() < least || recorder_.acquisitions() < before + 20)) {
    tick();
  }
  const auto grants = recorder_.acquisitions() - before;
  if (grants < 20) complain(fmt::format("{} grants when calm", grants));
  return patience + seconds(30);
}

void FleetRun::wait_until_idle(TimePoint until) {
  while (world_.now() < until && !all_idle()) tick();
  if (!all_idle()) complain("somebody waits for ever");
}

void FleetRun::close_all(Duration time) {
  for (auto* const program : programs_) {
    if (program->process().is_paused()) program->process().resume();
    program->close();
  }
  run_for(time);
}

void FleetRun::tell(RunResult& result) {
  for (auto& one : complaints_) result.violations.push_back(std::move(one));
  result.crashes = crashes_;
  result.trace = world_.trace_text();
}

}  // namespace dlock::simulation::migration

// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/fleet_at_work.hpp"

#include <fmt/format.h>

#include <thread>

#include "tests/soak/worker.hpp"

namespace dlock::fleet {

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kNames; ++i) names.push_back(soak::lock_name(i));
  return names;
}

FleetAtWork::FleetAtWork(const FleetOptions& options)
    : options_(options),
      dice_(options.seed * 7 + 3),
      workers_(options.program, options.seed, options.leased_source.empty(), run_.records,
               [this] { tick(); }),
      commands_(options.dlock, options.seed, [this] { tick(); }) {}

void FleetAtWork::complain(std::string what) {
  run_.records.seen.push_back({std::move(what), BoottimeClock::now()});
}

void FleetAtWork::tick() {
  workers_.tick();
  commands_.tick();
  std::this_thread::sleep_for(2ms);
}

void FleetAtWork::work_for(std::chrono::milliseconds time) {
  const auto end = BoottimeClock::now() + time;
  while (BoottimeClock::now() < end) tick();
}

void FleetAtWork::work_for_a_while() {
  const auto begin = BoottimeClock::now();
  work_for(between(dice_, 200ms, 600ms));
  while (!workers_.all_granted_since(begin)) {
    if (BoottimeClock::now() > begin + kProgressBound) {
      return complain(fmt::format("granted nothing for {} ms:{}", kProgressBound.count(),
                                  workers_.idle_since(begin)));
    }
    tick();
  }
}

std::set<std::string> FleetAtWork::names_seen() const {
  std::set<std::string> names;
  for (const auto& [worker, lines] : run_.records.lines) {
    for (const auto& line : lines) {
      if (line.note == soak::Note::wanted) names.insert(line.name);
    }
  }
  return names;
}

void FleetAtWork::collect() {
  workers_.calm();
  workers_.end();
  run_.records.end = BoottimeClock::now();
  for (const auto& name : names_seen()) {
    run_.records.writes[name] = soak::GuardedFile(workers_.folder(), name).all();
  }
  run_.remarks.insert(run_.remarks.end(), commands_.remarks().begin(), commands_.remarks().end());
  run_.remarks.insert(run_.remarks.end(), workers_.remarks().begin(), workers_.remarks().end());
  run_.commands = commands_.runs();
  run_.commands_killed = commands_.kills();
  run_.commands_stopped = commands_.pauses();
  run_.records_written = commands_.changes();
  run_.turned_away = workers_.turned_away();
}

}  // namespace dlock::fleet

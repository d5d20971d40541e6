// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/soak/worker.hpp"

namespace dlock::fleet {

using namespace std::chrono_literals;

namespace {

/// What the longest holds are measured by.
constexpr auto kLongHold = 1000ms;

}  // namespace

std::chrono::milliseconds between(Dice& dice, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most) {
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(least.count(), most.count())(dice));
}

bool chance(Dice& dice, double probability) {
  return std::uniform_real_distribution<>(0, 1)(dice) < probability;
}

Workers::Workers(std::string program, unsigned seed, bool make_names, soak::Records& records,
                 std::function<void()> meanwhile)
    : program_(std::move(program)),
      seed_(seed),
      make_names_(make_names),
      records_(records),
      dice_(seed * 7 + 1),
      meanwhile_(std::move(meanwhile)) {}

void Workers::start(std::size_t slot, const std::filesystem::path& config, bool fits) {
  auto& worker = workers_.at(slot);
  if (worker.process) {
    if (!calm_ && chance(dice_, 0.5)) {
      kill(worker);
    } else {
      end(worker);
    }
  }
  worker.config = config;
  worker.fits = fits;
  launch(worker);
}

void Workers::turn(std::size_t slot, bool fits) {
  auto& worker = workers_.at(slot);
  if (!fits) tick();  // what it was told so far
  worker.fits = fits;
  worker.turned = BoottimeClock::now();
}

void Workers::launch(Worker& worker) {
  worker.number = ++last_number_;
  worker.last_grant = {};
  worker.ending = false;
  testkit::ProcessOptions process;
  process.argv = {program_,
                  "--worker",
                  std::to_string(worker.number),
                  "--config",
                  worker.config.string(),
                  "--folder",
                  folder_.path().string(),
                  "--seed",
                  std::to_string(seed_ * 1000 + static_cast<unsigned>(worker.number)),
                  "--long-hold",
                  std::to_string(kLongHold.count())};
  if (make_names_) process.argv.emplace_back("--make-names");
  remarks_.push_back({BoottimeClock::now(), fmt::format("worker {} begins with {}", worker.number,
                                                        worker.config.filename().string())});
  worker.process = std::make_unique<testkit::Process>(std::move(process));
  worker.log =
      std::make_unique<soak::LogReader>(soak::log_file(folder_.path().string(), worker.number));
  if (next_fault_ == kNever) next_fault_ = BoottimeClock::now() + 500ms;
}

void Workers::read(Worker& worker) {
  for (auto& line : worker.log->read()) {
    if (line.note == soak::Note::granted) worker.last_grant = line.at;
    if (line.note == soak::Note::wanted) worker.asked[line.actor] = line.at;
    if (line.note == soak::Note::turned_away) {
      ++turned_away_;
      if (worker.fits && worker.asked[line.actor] > worker.turned) {
        records_.seen.push_back(
            {fmt::format("worker {} was turned away: {}", worker.number, line.name), line.at});
      }
    }
    records_.lines[worker.number].push_back(std::move(line));
  }
  if (!worker.ending && !worker.process->running()) {
    throw std::runtime_error(fmt::format("worker {} ended by itself: {}", worker.number,
                                         worker.process->collected_stderr()));
  }
}

bool Workers::all_granted_since(TimePoint when) const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return !worker.fits || worker.resume_at != kNever || worker.last_grant > when;
  });
}

std::string Workers::idle_since(TimePoint when) const {
  std::string all;
  for (const auto& worker : workers_) {
    if (!worker.fits || worker.resume_at != kNever || worker.last_grant > when) continue;
    all += fmt::format(" worker {} (pid {}, {})", worker.number, worker.process->pid(),
                       worker.config.stem().string());
  }
  return all;
}

void Workers::tick() {
  for (auto& worker : workers_) {
    if (!worker.process) continue;
    read(worker);
    if (BoottimeClock::now() >= worker.resume_at) resume(worker);
  }
  if (!calm_ && BoottimeClock::now() >= next_fault_) strike();
}

void Workers::strike() {
  next_fault_ = BoottimeClock::now() + between(dice_, 200ms, 1000ms);
  auto& worker = workers_.at(dice_() % kWorkers);
  if (!worker.process || worker.ending || worker.resume_at != kNever) return;
  if (chance(dice_, 0.5)) {
    kill(worker);
    launch(worker);
  } else {
    pause(worker);
  }
}

void Workers::kill(Worker& worker) {
  resume(worker);
  records_.deaths.push_back({worker.number, BoottimeClock::now()});
  worker.ending = true;
  worker.process->kill_and_wait();
  read(worker);
}

void Workers::pause(Worker& worker) {
  worker.stop = records_.stops.size();
  records_.stops.push_back({worker.number, BoottimeClock::now(), kNever});
  worker.process->pause();
  worker.resume_at = BoottimeClock::now() + between(dice_, 100ms, kLongestPause);
}

void Workers::resume(Worker& worker) {
  if (worker.resume_at == kNever) return;
  worker.process->resume();
  worker.resume_at = kNever;
  records_.stops.at(worker.stop).to = BoottimeClock::now();
}

void Workers::end(Worker& worker) {
  resume(worker);
  worker.ending = true;
  worker.process->close_stdin();
  const auto latest = testkit::patience();
  std::optional<testkit::ExitStatus> status;
  while (!(status = worker.process->wait(testkit::within(5ms))) && testkit::Clock::now() < latest) {
    meanwhile_();
  }
  if (!status || !status->success()) {
    records_.seen.push_back(
        {fmt::format("worker {} did not end in order", worker.number), BoottimeClock::now()});
  }
  read(worker);
}

void Workers::calm() {
  calm_ = true;
  for (auto& worker : workers_) resume(worker);
}

void Workers::end() {
  for (auto& worker : workers_) {
    worker.ending = true;
    worker.process->close_stdin();
  }
  for (auto& worker : workers_) end(worker);
}

}  // namespace dlock::fleet

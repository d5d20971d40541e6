// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/commands.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

namespace dlock::fleet {

using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

/// docs/cli.md
constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kUnavailable = 69;

constexpr auto kPatience = 120s;

std::size_t changes_in(const std::string& output) {
  json::error_code error;
  const auto value = json::parse(output, error);
  if (error || !value.is_object()) return 0;
  // With a gate: a turn of it.
  const auto* step = value.as_object().if_contains("changed");
  if (step != nullptr && step->is_bool()) return step->as_bool() ? 1 : 0;
  if (!value.as_object().contains("locks")) return 0;
  std::size_t changes = 0;
  for (const auto& lock : value.at("locks").as_array()) {
    if (lock.as_object().contains("changed") && lock.at("changed").as_bool()) ++changes;
  }
  return changes;
}

}  // namespace

Commands::Commands(std::string dlock, unsigned seed, std::function<void()> meanwhile)
    : dlock_(std::move(dlock)), dice_(seed * 7 + 2), meanwhile_(std::move(meanwhile)) {}

void Commands::use(std::filesystem::path config, std::string plan) {
  config_ = std::move(config);
  plan_ = std::move(plan);
}

testkit::ProcessOptions Commands::options(const std::string& verb,
                                          std::vector<std::string> arguments) const {
  testkit::ProcessOptions process;
  process.argv = {dlock_, "--config", config_.string(), "migrate", verb, plan_, "--json"};
  process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
  process.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  return process;
}

testkit::Finished Commands::run(const std::string& verb, std::vector<std::string> arguments) {
  ++runs_;
  testkit::Process process(options(verb, std::move(arguments)));
  process.close_stdin();
  const auto latest = testkit::within(kPatience);
  std::optional<testkit::ExitStatus> status;
  while (!(status = process.wait(testkit::within(5ms)))) {
    if (testkit::Clock::now() > latest) throw std::runtime_error(verb + " does not end");
    meanwhile_();
  }
  return {*status, process.unread_stdout(), process.collected_stderr()};
}

Commands::Command& Commands::launch(const std::string& verb,
                                    const std::vector<std::string>& arguments, int& faults) {
  ++runs_;
  auto& command = commands_.emplace_back();
  command.verb = verb;
  command.process = std::make_unique<testkit::Process>(options(verb, arguments));
  command.process->close_stdin();
  remark(command, "begins");
  // From before it has connected until the last of the names has moved.
  const auto when = BoottimeClock::now() + between(dice_, 10ms, 350ms);
  const auto what = std::uniform_real_distribution<>(0, 1)(dice_);
  if (faults <= 0 || what > 0.7) return command;
  --faults;
  (what < 0.35 ? command.kill_at : command.pause_at) = when;
  command.abandoned = chance(dice_, 0.5);
  return command;
}

void Commands::tick() {
  for (auto& command : commands_) {
    const auto now = BoottimeClock::now();
    if (now >= command.kill_at) {
      command.kill_at = kNever;
      command.killed = command.process->running();
      kills_ += command.killed ? 1 : 0;
      command.process->kill_and_wait();
      remark(command, "is killed");
    }
    if (now >= command.pause_at) {
      command.pause_at = kNever;
      if (!command.process->pause()) continue;
      ++pauses_;
      remark(command, "is stopped");
      command.resume_at = now + between(dice_, 100ms, kLongestPause);
    }
    if (now >= command.resume_at) {
      command.resume_at = kNever;
      command.process->resume();
      remark(command, "goes on");
    }
  }
}

void Commands::remark(const Command& command, const std::string& text) {
  remarks_.push_back(
      {BoottimeClock::now(), fmt::format("dlock migrate {} {} (pid {}) {}", command.verb, plan_,
                                         command.process->pid(), text)});
}

Commands::Outcome Commands::outcome_of(Command& command, std::string& words) {
  const auto status = command.process->wait(testkit::within(1s));
  const auto out = command.process->unread_stdout();
  words = out + command.process->collected_stderr();
  changes_ += changes_in(out);
  if (command.killed) return Outcome::again;
  remark(command, fmt::format("ends with status {}", status ? status->shell_status() : -1));
  switch (status ? status->shell_status() : -1) {
    case 0:
      return Outcome::done;
    case kWaits:
    case kUnavailable:
      return Outcome::again;
    case kRefused:
      return Outcome::refused;
    default:
      break;
  }
  throw std::runtime_error(fmt::format("dlock migrate {}: status {}: {}", command.verb,
                                       status ? status->shell_status() : -1, words));
}

void Commands::reach(const std::string& verb, const std::vector<std::string>& arguments,
                     const std::function<bool()>& is_done) {
  const auto latest = BoottimeClock::now() + kPatience;
  int faults = kFaultsOfAStep;
  std::string words;
  while (BoottimeClock::now() < latest) {
    if (is_done && is_done()) return;
    auto* command = &launch(verb, arguments, faults);
    // One that was stopped is not waited for, sometimes: it goes on when another has done its work,
    // or the next step, or the opposite.
    bool left_behind = false;
    while (command->process->running() && !left_behind) {
      meanwhile_();
      left_behind = command->resume_at != kNever && command->abandoned;
      if (BoottimeClock::now() > latest) break;
    }
    if (left_behind) continue;
    const auto outcome = outcome_of(*command, words);
    commands_.remove_if([&](const Command& one) { return &one == command; });
    if (outcome == Outcome::done && !is_done) return;
    // A step that is refused because of somebody who was killed is not refused for ever.
    if (outcome != Outcome::refused || is_done) continue;
    // A late command has taken back what was done.
    if (verb != "finish") throw std::runtime_error(fmt::format("{} is refused: {}", verb, words));
    wait_for_late_ones();
    reach("advance", {"--all", "--wait", "3s"});
  }
  throw std::runtime_error(fmt::format("{} does not get done: {}", verb, words));
}

void Commands::wait_for_late_ones() {
  const auto latest = BoottimeClock::now() + kPatience;
  for (auto& command : commands_) {
    while (command.process->running()) {
      meanwhile_();
      if (BoottimeClock::now() > latest) throw std::runtime_error("a late command does not end");
    }
    std::string words;
    outcome_of(command, words);
  }
  commands_.clear();
}

}  // namespace dlock::fleet

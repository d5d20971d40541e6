// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate` as operators run it: the real command, as a process that is killed and stopped at
// random, and run again; also while a stopped one has not gone.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "testkit/process.hpp"
#include "tests/live/migration/workers.hpp"

namespace dlock::fleet {

/// Kills and stops of the command in one step, at most.
inline constexpr int kFaultsOfAStep = 2;

class Commands {
 public:
  /// `meanwhile` is called all the time while a command is waited for.
  Commands(std::string dlock, unsigned seed, std::function<void()> meanwhile);

  /// The configuration and the plan of what follows.
  void use(std::filesystem::path config, std::string plan);
  /// Runs it until it is done, or, where one run is a step of several, until `is_done` says so.
  /// Throws std::runtime_error with its words if that cannot be.
  void reach(const std::string& verb, const std::vector<std::string>& arguments,
             const std::function<bool()>& is_done = {});
  /// Exit status and output, undisturbed.
  testkit::Finished run(const std::string& verb, std::vector<std::string> arguments);
  /// Kills, stops and resumes what is due. To be called all the time.
  void tick();
  /// Waits for the late ones, whatever they do.
  void wait_for_late_ones();

  const std::vector<Remark>& remarks() const { return remarks_; }
  std::size_t runs() const { return runs_; }
  std::size_t kills() const { return kills_; }
  std::size_t pauses() const { return pauses_; }
  std::size_t changes() const { return changes_; }

 private:
  struct Command {
    std::unique_ptr<testkit::Process> process;
    std::string verb;
    TimePoint kill_at = kNever;
    TimePoint pause_at = kNever;
    TimePoint resume_at = kNever;
    bool abandoned = false;  ///< once it is stopped, nobody waits for it
    bool killed = false;
  };
  enum class Outcome { done, again, refused };

  testkit::ProcessOptions options(const std::string& verb,
                                  std::vector<std::string> arguments) const;
  Command& launch(const std::string& verb, const std::vector<std::string>& arguments, int& faults);
  Outcome outcome_of(Command& command, std::string& words);
  void remark(const Command& command, const std::string& text);

  const std::string dlock_;
  Dice dice_;
  std::function<void()> meanwhile_;
  std::filesystem::path config_;
  std::string plan_;
  std::list<Command> commands_;
  std::vector<Remark> remarks_;
  std::size_t runs_ = 0;
  std::size_t kills_ = 0;
  std::size_t pauses_ = 0;
  std::size_t changes_ = 0;
};

}  // namespace dlock::fleet

// SPDX-License-Identifier: Apache-2.0
//
// The workers of a migrating fleet: the soak's, each a process that reads a configuration file.
// Killed (and started again) and stopped past their leases at random.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/soak/log.hpp"
#include "tests/soak/records.hpp"

namespace dlock::fleet {

using Dice = std::mt19937;

inline constexpr std::size_t kWorkers = 6;
inline constexpr int kNames = 20;

/// At most so long is anything stopped: past its lease, and its margin.
inline constexpr auto kLongestPause = std::chrono::milliseconds(3000);

/// What was done to the fleet, in words.
struct Remark {
  TimePoint at;
  std::string text;
};

/// From one to another.
std::chrono::milliseconds between(Dice& dice, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most);
bool chance(Dice& dice, double probability);

class Workers {
 public:
  /// `meanwhile` is called all the time while a worker is waited for. `make_names`: they lock names
  /// too that are made at that moment.
  Workers(std::string program, unsigned seed, bool make_names, soak::Records& records,
          std::function<void()> meanwhile);

  /// Ends (killed, or in order) what is in the slot and starts another with this configuration.
  /// `fits`: it may not be turned away.
  void start(std::size_t slot, const std::filesystem::path& config, bool fits);
  /// Whether all whose configuration fits, and that are not stopped now, were granted something
  /// since.
  bool all_granted_since(TimePoint when) const;
  /// Who was not, for people.
  std::string idle_since(TimePoint when) const;

  /// Reads what they wrote; kills, stops and resumes what is due. To be called all the time.
  void tick();
  /// Nothing more is broken, and what is stopped goes on.
  void calm();
  /// All end in order.
  void end();

  const std::filesystem::path& folder() const { return folder_.path(); }
  const std::vector<Remark>& remarks() const { return remarks_; }
  std::size_t turned_away() const { return turned_away_; }
  /// From now on its configuration fits, or does not.
  void turn(std::size_t slot, bool fits);

 private:
  struct Worker {
    int number = 0;
    std::unique_ptr<testkit::Process> process;
    std::unique_ptr<soak::LogReader> log;
    std::filesystem::path config;
    bool fits = true;
    TimePoint turned{};              ///< when that was changed
    std::map<int, TimePoint> asked;  ///< when each actor did so last
    bool ending = false;
    TimePoint last_grant{};
    TimePoint resume_at = kNever;  ///< it is stopped
    std::size_t stop = 0;          ///< of the records
  };

  void launch(Worker& worker);
  void read(Worker& worker);
  void kill(Worker& worker);
  void pause(Worker& worker);
  void resume(Worker& worker);
  void end(Worker& worker);
  void strike();

  const std::string program_;
  const unsigned seed_;
  const bool make_names_;
  soak::Records& records_;
  Dice dice_;
  std::function<void()> meanwhile_;
  testkit::TempDir folder_{"dlock-fleet-logs"};
  std::array<Worker, kWorkers> workers_;
  std::vector<Remark> remarks_;
  int last_number_ = 0;
  std::size_t turned_away_ = 0;
  TimePoint next_fault_ = kNever;
  bool calm_ = false;
};

}  // namespace dlock::fleet

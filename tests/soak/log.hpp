// SPDX-License-Identifier: Apache-2.0
//
// What a worker writes down, a line for each event, appended with one write() each: whatever it did
// before it was killed or stopped can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/clock.hpp"

namespace dlock::soak {

enum class Note {
  wanted,
  given_up,
  granted,
  extended,
  releasing,
  told_lost,
  held_up,      ///< from `at` until `until` the machine did not run even a bare timer of the worker
  odd,          ///< something that must not happen, in `name`
  refused,      ///< why it was granted nothing, in `name`: for whoever has to find out
  in_store,     ///< the store of a grant, in `name`
  turned_away,  ///< its configuration does not fit a migration (any more): why, in `name`
};

const char* to_string(Note note) noexcept;

struct Line {
  TimePoint at;
  Note note = Note::wanted;
  int actor = 0;
  std::uint64_t grant = 0;  ///< counted by the worker
  std::uint64_t token = 0;  ///< 0: none
  TimePoint until = kNever;
  std::string name = {};
};

/// Any thread.
class LogWriter {
 public:
  explicit LogWriter(const std::filesystem::path& file);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  void write(const Line& line) const;

 private:
  int fd_;
};

/// Follows a log that is being written.
class LogReader {
 public:
  explicit LogReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// The lines that have come since the last call.
  std::vector<Line> read();

 private:
  std::filesystem::path file_;
  std::ifstream stream_;
  std::string rest_;
};

}  // namespace dlock::soak

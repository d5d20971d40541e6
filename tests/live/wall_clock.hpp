// SPDX-License-Identifier: Apache-2.0
//
// A wall clock that a test sets, for processes that it starts (clock_shim.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "testkit/temp_dir.hpp"

namespace dlock::testkit {

class WallClock {
 public:
  /// `shim`: the library's path.
  explicit WallClock(std::string shim) : shim_(std::move(shim)) { be_wrong_by({}); }

  /// From now on, against the true time.
  void be_wrong_by(std::chrono::nanoseconds offset) {
    const std::int64_t nanoseconds = offset.count();
    // In place: the file is mapped by those who run.
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(path(), std::ios::binary | std::ios::out);
    file.write(reinterpret_cast<const char*>(&nanoseconds), sizeof nanoseconds);
  }

  std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"LD_PRELOAD", shim_}, {"DLOCK_TEST_CLOCK", path()}};
  }
  /// A command line that starts `command` with this clock.
  std::vector<std::string> with_it(const std::vector<std::string>& command) const {
    std::vector<std::string> line{"env"};
    for (const auto& [name, value] : environment()) line.push_back(name + "=" + value);
    line.insert(line.end(), command.begin(), command.end());
    return line;
  }

 private:
  std::string path() const { return (folder_ / "clock").string(); }

  std::string shim_;
  TempDir folder_{"dlock-clock"};
};

/// A server whose wall clock can be set.
template <class Kind>
class WithWallClock : public Kind {
 public:
  template <class... Arguments>
  explicit WithWallClock(const std::string& shim, Arguments&&... arguments)
      : Kind(std::forward<Arguments>(arguments)...), clock_(shim) {}
  WallClock& clock() { return clock_; }

 protected:
  std::vector<std::string> command() override { return clock_.with_it(Kind::command()); }

 private:
  WallClock clock_;
};

}  // namespace dlock::testkit

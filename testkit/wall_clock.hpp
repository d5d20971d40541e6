// SPDX-License-Identifier: Apache-2.0
//
// A wall clock that can be set, for processes that one starts (clock_shim.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace dlock::testkit {

class WallClock {
 public:
  /// `shim`: the library's path; `file`: holds the clock's error.
  WallClock(std::string shim, std::filesystem::path file)
      : shim_(std::move(shim)), file_(std::move(file)) {
    be_wrong_by({});
  }

  /// From now on, against the true time.
  void be_wrong_by(std::chrono::nanoseconds offset) {
    const std::int64_t nanoseconds = offset.count();
    // In place: the file is mapped by those who run.
    std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(file_, std::ios::binary | std::ios::out);
    file.write(reinterpret_cast<const char*>(&nanoseconds), sizeof nanoseconds);
  }

  std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"LD_PRELOAD", shim_}, {"DLOCK_TEST_CLOCK", file_.string()}};
  }
  /// A command line that starts `command` with this clock.
  std::vector<std::string> with_it(const std::vector<std::string>& command) const {
    std::vector<std::string> line{"env"};
    for (const auto& [name, value] : environment())
      line.emplace_back(name).append("=").append(value);
    line.insert(line.end(), command.begin(), command.end());
    return line;
  }

 private:
  std::string shim_;
  std::filesystem::path file_;
};

/// A server whose wall clock can be set.
template <class Kind>
class WithWallClock : public Kind {
 public:
  template <class... Arguments>
  explicit WithWallClock(const std::string& shim, Arguments&&... arguments)
      : Kind(std::forward<Arguments>(arguments)...), clock_(shim, this->folder() / "clock") {}
  WallClock& clock() { return clock_; }

 protected:
  std::vector<std::string> command() override { return clock_.with_it(Kind::command()); }

 private:
  WallClock clock_;
};

}  // namespace dlock::testkit

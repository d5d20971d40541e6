// SPDX-License-Identifier: Apache-2.0
//
// What the locks of a soak guard: a file per name that accepts no write with a lower token than it
// has seen, and writes down all that it was asked, in its own order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dlock/clock.hpp"

namespace dlock::soak {

struct GuardedWrite {
  TimePoint at;
  int worker = 0;
  std::uint64_t grant = 0;  ///< counted by the worker
  std::uint64_t token = 0;
  bool accepted = false;
};

/// Processes share it by its file. Any thread.
class GuardedFile {
 public:
  GuardedFile(const std::filesystem::path& folder, const std::string& name);
  void write(int worker, std::uint64_t grant, std::uint64_t token) const;
  std::vector<GuardedWrite> all() const;

 private:
  std::filesystem::path file_;
};

}  // namespace dlock::soak

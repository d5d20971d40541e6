// SPDX-License-Identifier: Apache-2.0
//
// What there is to know of the machine and of a process, from /proc.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace dlock::compare {

/// Of a file below /proc; of a process that has just ended: empty.
std::string content_of(const std::filesystem::path& file);

/// Processor, cores, memory, kernel, load.
boost::json::object describe_machine();
double load_average();

struct ProcessFigures {
  double memory_mb = 0;
  double cpu_seconds = 0;
  double threads = 0;
};
/// nullopt: no such process.
std::optional<ProcessFigures> figures_of(int pid);

}  // namespace dlock::compare

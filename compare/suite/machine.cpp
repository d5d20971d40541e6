// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace dlock::compare {

namespace {

std::string value_behind(const std::string& text, const std::string& label) {
  auto at = text.find(label);
  if (at == std::string::npos) return {};
  at = text.find(':', at);
  const auto begin = text.find_first_not_of(" \t", at + 1);
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text, '\0');  // does not throw, as the stream's buffer does
  return text;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

boost::json::object describe_machine() {
  utsname system{};
  ::uname(&system);
  const auto processor = value_behind(content_of("/proc/cpuinfo"), "model name");
  const auto memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  return {{"processor", processor.empty() ? std::string(system.machine) : processor},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_gb", memory},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"load_before", load_average()}};
}

std::optional<ProcessFigures> figures_of(int pid) {
  const auto folder = fmt::format("/proc/{}", pid);
  const auto status = content_of(folder + "/status");
  if (status.empty()) return std::nullopt;
  ProcessFigures figures;
  figures.memory_mb = std::strtod(value_behind(status, "VmRSS").c_str(), nullptr) / 1024;
  figures.threads = std::strtod(value_behind(status, "Threads").c_str(), nullptr);
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    // Nanoseconds on the processor; the ticks of `stat` are too coarse for a second's look.
    const auto schedule = content_of(task.path() / "schedstat");
    figures.cpu_seconds += std::strtod(schedule.c_str(), nullptr) / 1e9;
  }
  return figures;
}

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
#include "core/config/secret.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace dlock::core {

namespace {

constexpr std::size_t kLongestSecret = 4096;

}  // namespace

Parsed<std::string> secret_from_environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): read at open
  if (value == nullptr) {
    return {{}, fmt::format("the environment variable {} is not set", variable)};
  }
  if (*value == '\0') return {{}, fmt::format("the environment variable {} is empty", variable)};
  return {std::string(value), {}};
}

Parsed<std::string> secret_from_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string line;
  // Not all of whatever it is: /dev/zero has no end of a line.
  std::array<char, kLongestSecret + 1> buffer{};
  file.getline(buffer.data(), buffer.size());
  line = buffer.data();
  if (file.fail() && line.size() == kLongestSecret) {
    return {{},
            fmt::format("the first line of the file {} has over {} bytes", path, kLongestSecret)};
  }
  if (file.fail()) {
    const std::string reason =
        errno != 0 ? std::generic_category().message(errno) : std::string("it is empty");
    return {{}, fmt::format("the file {} cannot be read: {}", path, reason)};
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty()) return {{}, fmt::format("the first line of the file {} is empty", path)};
  return {std::move(line), {}};
}

}  // namespace dlock::core

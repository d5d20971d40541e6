// SPDX-License-Identifier: Apache-2.0
#include "core/config/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/password.hpp"

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
  const auto unreadable = [&path](int error) -> Parsed<std::string> {
    const auto why =
        error != 0 ? std::generic_category().message(error) : std::string("it is empty");
    return {{}, fmt::format("the file {} cannot be read: {}", path, why)};
  };
  // Not by a stream: a child that another thread starts meanwhile would inherit its descriptor.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return unreadable(errno);
  std::string text;
  std::array<char, 1024> part{};
  ssize_t got = 1;
  // One line at most: /dev/zero has no end of a line.
  while (got > 0 && text.size() <= kLongestSecret && text.find('\n') == std::string::npos) {
    got = ::read(file, part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  ::close(file);
  if (got < 0 || text.empty()) return unreadable(error);
  auto line = text.substr(0, text.find('\n'));
  if (line.size() > kLongestSecret) {
    return {{},
            fmt::format("the first line of the file {} has over {} bytes", path, kLongestSecret)};
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty()) return {{}, fmt::format("the first line of the file {} is empty", path)};
  return {std::move(line), {}};
}

}  // namespace dlock::core

namespace dlock::inline v0 {

void Password::read_again(Env& env, Job done) {
  const auto read = std::make_shared<core::Parsed<std::string>>();
  Job job = [read, file = file_] {
    try {
      *read = core::secret_from_file(file);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      read->error = error.what();
    }
  };
  Job end = [self = shared_from_this(), read, done = std::move(done)]() mutable {
    self->trouble_ = std::move(read->error);
    if (read->value) self->value_ = std::move(*read->value);
    done();
  };
  env.run_unbounded(std::move(job), std::move(end));
}

}  // namespace dlock::inline v0

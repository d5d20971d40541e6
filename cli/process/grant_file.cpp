// SPDX-License-Identifier: Apache-2.0
#include "cli/process/grant_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "dlock/exported_grant.hpp"

namespace dlock::cli {
namespace {

[[noreturn]] void refuse_grant(const std::string& name, std::string why) {
  throw LockError(make_error_code(errc::invalid_argument), {name, {}, "--adopt: " + why});
}

std::string first_line_of(int descriptor, const std::string& name) {
  std::string line;
  while (line.size() <= ExportedGrant::kLongestText) {
    char byte = 0;
    const auto got = ::read(descriptor, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_grant(name, std::generic_category().message(errno));
    if (got == 0 || byte == '\n') break;
    line += byte;
  }
  return line;
}

std::string first_line(const std::string& file, const std::string& name) {
  if (file == "-") return first_line_of(STDIN_FILENO, name);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    refuse_grant(name, fmt::format("{}: {}", file, std::generic_category().message(errno)));
  }
  auto line = first_line_of(descriptor, name);
  ::close(descriptor);
  return line;
}

}  // namespace

std::string read_grant(const std::string& file, const std::string& name) {
  auto text = first_line(file, name);
  if (text.empty()) {
    refuse_grant(name,
                 fmt::format("{} is empty: `dlock hold {} --export` writes its line when it has "
                             "the lock; wait for that",
                             file == "-" ? "standard input" : file, name));
  }
  const auto grant = ExportedGrant::read(text);
  if (grant.name != name) refuse_grant(name, fmt::format("it is a grant of {}", grant.name));
  return text;
}

}  // namespace dlock::cli

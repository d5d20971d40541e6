// SPDX-License-Identifier: Apache-2.0
#include "program/output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "dlock/spi/name.hpp"

namespace dlock::program {

namespace {

bool quiet = false;

/// 0, or the errno.
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// A message that nobody takes is dropped: whoever waits for its reader does not watch the lock.
void write_bounded(int descriptor, std::string_view text) noexcept {
  constexpr int kPatience_ms = 100;
  while (!text.empty()) {
    pollfd polled{descriptor, POLLOUT, 0};
    if (::poll(&polled, 1, kPatience_ms) <= 0) return;
    // A pipe that says it is ready takes so much at once.
    const ssize_t written =
        ::write(descriptor, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void print_line(std::string_view text) {
  std::string line(text);
  line += '\n';
  const int error = write_all(STDOUT_FILENO, line);
  if (error == EPIPE) throw OutputClosed{};
  if (error != 0) throw OutputFailed{error};
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto character = text.substr(at, std::max<std::size_t>(length, 1));
    const auto byte = static_cast<unsigned char>(character.front());
    // U+0080 to U+009F are control characters, too.
    const bool control = byte < 0x20 || byte == 0x7F ||
                         (byte == 0xC2 && static_cast<unsigned char>(character.back()) < 0xA0);
    if (length != 0 && !control) {
      result += character;
    } else {
      for (const char c : character) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    at += character.size();
  }
  return result;
}

void complain(std::string_view text) noexcept {
  try {
    std::string line = "dlock: ";
    line += printable(text);
    line += '\n';
    write_bounded(STDERR_FILENO, line);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a message
  }
}

void warn(std::string_view text) noexcept {
  if (quiet) return;
  try {
    complain("warning: " + std::string(text));
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a message
  }
}

void be_quiet() noexcept { quiet = true; }
bool is_quiet() noexcept { return quiet; }

void complain_json(const std::string& object) noexcept {
  try {
    write_bounded(STDERR_FILENO, object + '\n');
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a message
  }
}

}  // namespace dlock::program

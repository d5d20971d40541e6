// SPDX-License-Identifier: Apache-2.0
#include "program/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/name.hpp"
#include "program/exit_codes.hpp"
#include "program/writer.hpp"

namespace dlock::program {

namespace {

bool quiet = false;

constexpr std::size_t kMostMessages = 64 * 1024;

// Never destroyed: their threads last until the process ends.
Writer& standard_output() {
  static auto* const writer = new Writer(STDOUT_FILENO, std::string::npos);
  return *writer;
}

Writer& standard_error() {
  static auto* const writer = new Writer(STDERR_FILENO, kMostMessages);
  return *writer;
}

}  // namespace

void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
  }
}

int report_failed_output(const OutputFailed& failed) {
  complain(failed.error == ETIMEDOUT ? "standard output is full and is not read"
                                     : fmt::format("standard output cannot be written: {}",
                                                   std::generic_category().message(failed.error)));
  return status(Exit::output);
}

void print_line(std::string_view text) {
  std::string line(text);
  line += '\n';
  standard_output().write(line);
  const int error = output_error();
  if (error != 0 && error != ETIMEDOUT) throw OutputFailed{error};
}

int output_error() noexcept { return standard_output().error(); }

void finish_output() {
  if (output_error() == ETIMEDOUT) {
    // Signals may be blocked for a signalfd that is no longer read.
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
    standard_output().finish();
  }
  if (const int error = output_error(); error != 0) throw OutputFailed{error};
}

bool output_has_reader() noexcept {
  pollfd polled{STDOUT_FILENO, 0, 0};
  return ::poll(&polled, 1, 0) <= 0 || (polled.revents & (POLLERR | POLLHUP)) == 0;
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

void write_message(std::string_view text) noexcept {
  or_end([text] { standard_error().write(text); });
}

void complain(std::string_view text) noexcept {
  or_end([text] { write_message("dlock: " + printable(text) + '\n'); });
}

void warn(std::string_view text) noexcept {
  if (!quiet) or_end([text] { complain("warning: " + std::string(text)); });
}

void be_quiet() noexcept { quiet = true; }
bool is_quiet() noexcept { return quiet; }

void complain_json(const std::string& object) noexcept {
  or_end([&object] { write_message(object + '\n'); });
}

}  // namespace dlock::program

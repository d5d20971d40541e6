// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_status.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace dlock::inline v0 {
namespace {

/// Inode number of the first pid namespace on every Linux machine.
constexpr std::uint32_t kFirstNamespace = 0xEFFFFFFC;

std::uint32_t own_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? static_cast<std::uint32_t>(info.st_ino) : 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace

Owner this_process() {
  Owner owner;
  owner.host = host_name();
  owner.pid = ::getpid();
  owner.pid_namespace = own_namespace();
  return owner;
}

bool runs_here(const Owner& owner) {
  const auto me = this_process();
  return owner.host == me.host && owner.pid_namespace != 0 &&
         owner.pid_namespace == me.pid_namespace;
}

std::string pid_words(const Owner& owner) {
  const auto me = this_process();
  const auto known = owner.host == me.host ? me.pid_namespace : kFirstNamespace;
  const bool is_usable = owner.pid_namespace == 0 || known == 0 || owner.pid_namespace == known;
  return fmt::format("pid {}{}", owner.pid, is_usable ? "" : " in another pid namespace");
}

bool has_host_pid(const Owner& owner) {
  return owner.pid_namespace == 0 || owner.pid_namespace == kFirstNamespace;
}

std::string pid_words_for_others(const Owner& owner) {
  return fmt::format("pid {}{}", owner.pid, has_host_pid(owner) ? "" : " in its pid namespace");
}

void append_pid(const Owner& owner, std::string& out) {
  std::array<char, 48> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto* end = std::to_chars(text.begin(), text.end(), owner.pid).ptr;
  if (owner.pid_namespace != 0) {
    *end++ = '@';
    end = std::to_chars(end, text.end(), owner.pid_namespace).ptr;
  }
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

bool read_pid(std::string_view text, Owner& owner) {
  const char* const last = text.data() + text.size();
  const auto pid = std::from_chars(text.data(), last, owner.pid);
  if (pid.ec != std::errc() || pid.ptr == last) return pid.ec == std::errc();
  if (*pid.ptr != '@') return false;
  const auto space = std::from_chars(pid.ptr + 1, last, owner.pid_namespace);
  return space.ec == std::errc() && space.ptr == last;
}

}  // namespace dlock::inline v0

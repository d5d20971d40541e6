// SPDX-License-Identifier: Apache-2.0
#include "cli/process/nesting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "cli/process/process_tree.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::status;

namespace {

/// FNV-1a: what it hides is no secret, and it is short.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Before the id of a lock that is held in shared mode.
constexpr std::string_view kShared = "shared:";

std::string variable() {
  const char* value = std::getenv(kHeldVariable);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return value == nullptr ? std::string() : value;
}

}  // namespace

std::string lock_id(const Config& config, const std::string& name) {
  const RouteConfig* route = config.route(name);
  if (route == nullptr || route->migrate) return {};
  for (const StoreConfig& store : config.stores) {
    if (store.name != route->store) continue;
    return fmt::format("{:016x}/{}", digest(store.place()), name);
  }
  return {};
}

OuterHold outer_hold(const std::string& id) {
  std::istringstream lines(variable());
  for (std::string line; !id.empty() && std::getline(lines, line);) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    auto held = std::string_view(line).substr(space + 1);
    const bool shared = held.starts_with(kShared);
    if (shared) held.remove_prefix(kShared.size());
    if (held != id) continue;
    const int pid = std::atoi(line.c_str());
    // What was left behind by one that has ended holds nothing.
    if (pid > 0 && is_ancestor(pid)) return {pid, shared ? Mode::shared : Mode::exclusive};
  }
  return {};
}

bool is_under(const OuterHold& outer, const Arguments& arguments) {
  return outer.pid != 0 && (arguments.shared || outer.mode == Mode::exclusive);
}

std::optional<int> refuse_nested(const Config& config, const Arguments& arguments) {
  if (arguments.permits) return std::nullopt;  // of a semaphore, which no lock keeps anybody from
  const auto outer = outer_hold(lock_id(config, arguments.name));
  if (outer.pid == 0) return std::nullopt;
  const auto begin = fmt::format("{}: the dlock run around this command (pid {}) holds it",
                                 arguments.name, outer.pid);
  if (!is_under(outer, arguments)) {
    complain(begin +
             " in shared mode, and its end would be waited for forever; leave --shared "
             "out there, or write it here, too");
    return status(Exit::usage);
  }
  complain(fmt::format("{} already, and would be waited for forever; leave the inner one out{}",
                       begin,
                       arguments.verb == Verb::run
                           ? ", or write dlock run --nested to go on under the lock that is held"
                           : ""));
  return status(Exit::usage);
}

std::string held_with(const std::string& id, Mode mode) {
  auto all = variable();
  if (id.empty()) return all;
  if (!all.empty()) all += '\n';
  return all + fmt::format("{} {}{}", ::getpid(), mode == Mode::shared ? kShared : "", id);
}

}  // namespace dlock::cli

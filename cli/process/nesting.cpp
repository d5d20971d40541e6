// SPDX-License-Identifier: Apache-2.0
#include "cli/process/nesting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "cli/process/process_table.hpp"
#include "dlock/lock_status.hpp"
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

namespace {

/// The entry of the environment for that lock, if there is one.
std::optional<OuterHold> entry_of(const std::string& id) {
  std::optional<OuterHold> found;
  std::istringstream lines(variable());
  // The last one: the innermost `run`.
  for (std::string line; !id.empty() && std::getline(lines, line);) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    auto held = std::string_view(line).substr(space + 1);
    OuterHold outer;
    if (held.starts_with(kShared)) {
      outer.mode = Mode::shared;
      held.remove_prefix(kShared.size());
    }
    if (held != id) continue;
    outer.pid = std::atoll(line.c_str());
    if (const auto colon = line.find(':'); colon < space) {
      outer.token = std::strtoull(line.c_str() + colon + 1, nullptr, 10);
    }
    found = outer;
  }
  return found;
}

bool is_grant_of(const OuterHold& outer, const std::optional<Owner>& owner,
                 const std::optional<std::uint64_t>& token) {
  if (outer.token) return token == outer.token;
  return owner && owner->pid == outer.pid && runs_here(*owner) &&
         age_of_ancestor(static_cast<pid_t>(outer.pid));
}

}  // namespace

std::optional<OuterHold> outer_hold(LockManager& locks, const std::string& id,
                                    const Arguments& arguments) {
  if (arguments.permits) return std::nullopt;  // a lock does not keep a semaphore's permits back
  auto outer = entry_of(id);
  if (!outer) return std::nullopt;
  const auto status = locks.status(arguments.name);
  if (status.held && status.mode == Mode::exclusive &&
      is_grant_of(*outer, status.owner, status.token)) {
    outer->owner = status.owner.value_or(Owner{});
    return outer;
  }
  for (const auto& reader : status.readers) {
    if (!is_grant_of(*outer, reader.owner, reader.token)) continue;
    outer->owner = reader.owner;
    return outer;
  }
  return std::nullopt;
}

bool is_under(const OuterHold& outer, const Arguments& arguments) {
  return arguments.shared || outer.mode == Mode::exclusive;
}

int refuse_nested(const OuterHold& outer, const Arguments& arguments) {
  const auto begin = fmt::format("{}: the dlock run around this command ({}) holds it",
                                 arguments.name, pid_words(outer.owner));
  if (!is_under(outer, arguments)) {
    complain(begin +
             " in shared mode, so this command would wait forever; remove --shared there, or add "
             "it here");
    return status(Exit::usage);
  }
  complain(fmt::format("{}, so this command would wait forever; remove the inner one{}", begin,
                       arguments.verb == Verb::run
                           ? ", or write dlock run --nested to use the lock that is held"
                           : ""));
  return status(Exit::usage);
}

std::string held_with(const std::string& id, const LockHandle& held) {
  auto all = variable();
  if (id.empty()) return all;
  if (!all.empty()) all += '\n';
  const auto token = held.token();
  return all + fmt::format("{}{} {}{}", ::getpid(), token ? fmt::format(":{}", *token) : "",
                           held.mode() == Mode::shared ? kShared : "", id);
}

}  // namespace dlock::cli

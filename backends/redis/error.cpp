// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/error.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/error_category.hpp"

#include <algorithm>
#include <array>
#include <boost/system/system_error.hpp>
#include <cctype>
#include <charconv>
#include <system_error>

namespace dlock::redis {
namespace {

ErrorMeaning meaning(Error error) noexcept {
  switch (error) {
    case Error::connection_lost:
      return {errc::unavailable, "the connection to the Redis server was lost"};
    case Error::no_answer:
      return {errc::unavailable, "the Redis server did not answer in time"};
    case Error::not_connected:
      return {errc::unavailable,
              "the Redis server cannot be reached; check address, port and whether it runs"};
    case Error::unknown_host:
      return {errc::unavailable, "the Redis server's host name cannot be resolved"};
    case Error::tls_failed:
      return {errc::access_denied,
              "no TLS connection to the Redis server; check scheme, port and certificates"};
    case Error::access_denied:
      return {errc::access_denied,
              "the Redis server refuses what we need; grant the right by ACL SETUSER"};
    case Error::authentication_failed:
      return {errc::access_denied, "the Redis server refused our user name or password"};
    case Error::no_scripting:
      return {errc::config_unsafe,
              "the Redis server does not let us run scripts; allow EVAL and EVALSHA"};
    case Error::read_only:
      return {errc::unavailable, "the Redis server is a replica; name the master"};
    case Error::loading:
      return {errc::unavailable, "the Redis server is still loading its data"};
    case Error::busy:
      return {errc::unavailable, "the Redis server is busy with a long script"};
    case Error::out_of_memory:
      return {errc::unavailable, "the Redis server has no memory left; raise maxmemory"};
    case Error::refused:
      return {errc::unavailable, "the Redis server takes no commands at the moment"};
    case Error::foreign_format:
      return {errc::protocol, "the lock's key holds another program's data type"};
    case Error::cluster:
      return {errc::not_supported,
              "the Redis server is part of a cluster or a Sentinel, which redis:// does not serve"};
    case Error::unexpected:
      return {errc::protocol, "the Redis server answered something unexpected"};
    case Error::closed:
      return {errc::closed, "the connection to the Redis server was closed by us"};
    case Error::held_with_other_token:
      return {errc::not_holder, "the lock is held with another token"};
    case Error::not_held:
      return {errc::not_found, "no client holds the lock"};
    case Error::token_too_high:
      return {errc::protocol, "the fencing tokens of this lock are used up (2^53)"};
    case Error::no_database:
      return {errc::config_invalid, "the Redis server has no database of this number"};
    case Error::configuration:
      return {errc::config_invalid, "the store's settings cannot be used"};
    case Error::sealed:
      return {errc::moving, "a migration has sealed this lock: no client can hold it here"};
    case Error::no_places:
      return {errc::unavailable,
              "the Redis server has no place for another client; raise maxclients"};
    case Error::no_resources:
      return {errc::unavailable,
              "this process has no resources left for a connection to the Redis server"};
    case Error::foreign_aside:
      return {errc::protocol, "a key beside the lock's own holds another program's data type"};
    case Error::password_wanted:
      return {errc::access_denied,
              "the Redis server wants a password; name its place: auth: { password_env: VARIABLE } "
              "or "
              "{ password_file: PATH } in YAML, redis://:PASSWORD@host in a URL"};
    case Error::newer_format:
      return {errc::newer_format, "a newer version of dlock wrote it"};
    case Error::self_test_failed:
      return {errc::config_unsafe, "the Redis server, or a proxy before it, ignores conditions"};
  }
  return {errc::protocol, "unknown Redis error"};
}

struct Rule {
  std::string_view code;
  Verdict verdict;
};

using Next = Verdict::Next;

constexpr std::array<Rule, 23> kRules{{
    {"NOSCRIPT", {Error::refused, Next::load_script}},
    {"LOADING", {Error::loading, Next::retry}},
    {"BUSY", {Error::busy, Next::retry}},
    {"READONLY", {Error::read_only, Next::reconnect}},
    {"MASTERDOWN", {Error::read_only, Next::reconnect}},
    {"OOM", {Error::out_of_memory, Next::retry}},
    {"NOREPLICAS", {Error::refused, Next::retry}},
    {"MISCONF", {Error::refused, Next::retry}},
    {"TRYAGAIN", {Error::refused, Next::retry}},
    {"NOPERM", {Error::access_denied, Next::give_up}},
    {"NOAUTH", {Error::password_wanted, Next::give_up}},
    {"DENIED", {Error::access_denied, Next::give_up}},
    {"WRONGPASS", {Error::authentication_failed, Next::give_up}},
    {"WRONGTYPE", {Error::foreign_format, Next::give_up}},
    {"MOVED", {Error::cluster, Next::give_up}},
    {"ASK", {Error::cluster, Next::give_up}},
    {"CROSSSLOT", {Error::cluster, Next::give_up}},
    {"CLUSTERDOWN", {Error::cluster, Next::give_up}},
    {"ERR max number of clients", {Error::no_places, Next::retry}},
    {"ERR AUTH", {Error::authentication_failed, Next::give_up}},
    {"ERR invalid password", {Error::authentication_failed, Next::give_up}},
    {"ERR DB index", {Error::no_database, Next::give_up}},
    {"ERR Client sent AUTH", {Error::authentication_failed, Next::give_up}},
}};

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// A script's error of servers before 7: `ERR Error running script (...): @user_script:3: OOM ...`.
std::string_view cause(std::string_view text) {
  constexpr std::string_view kMark = "@user_script:";
  if (!text.starts_with("ERR ")) return text;
  const auto mark = text.find(kMark);
  if (mark == std::string_view::npos) return text;
  const auto end = text.find(": ", mark + kMark.size());
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

constexpr std::string_view kCommandRefused = "can't run this command";

/// The command that a line of a script calls, in lower case; empty if it calls none.
std::string called_in(std::string_view line) {
  const auto call = line.find("call('");
  if (call == std::string_view::npos) return {};
  const auto name = line.substr(call + 6);
  std::string command(name.substr(0, name.find('\'')));
  std::transform(command.begin(), command.end(), command.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return command;
}

/// The line of `script` that an error names as its place; empty if it names none.
std::string_view line_of(std::string_view text, std::string_view script) {
  constexpr std::string_view kMark = "@user_script:";
  const auto mark = text.rfind(kMark);
  if (mark == std::string_view::npos) return {};
  auto digits = text.substr(mark + kMark.size());
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  int line = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  for (; line > 1 && !script.empty(); --line) {
    script.remove_prefix(std::min(script.size(), script.find('\n') + 1));
  }
  return script.substr(0, script.find('\n'));
}

bool is_about_scripting(std::string_view text) {
  const bool scripting = contains(text, "'eval") || contains(text, "`eval") ||
                         contains(text, "'EVAL") || contains(text, "`EVAL");
  return scripting && (text.starts_with("NOPERM") || contains(text, "unknown command"));
}

}  // namespace

const boost::system::error_category& redis_category() noexcept {
  return ErrorCategory<Error, meaning>::instance("dlock.redis");
}

boost::system::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), redis_category()};
}

Verdict judge(std::string_view text) {
  if (is_about_scripting(text)) return {Error::no_scripting, Next::give_up};
  const auto what = cause(text);
  for (const auto& rule : kRules) {
    if (!what.starts_with(rule.code)) continue;
    const bool whole_word = what.size() == rule.code.size() || contains(rule.code, " ") ||
                            what[rule.code.size()] == ' ';
    if (whole_word) return rule.verdict;
  }
  if (contains(what, kCommandRefused) || contains(what, "No permissions to access") ||
      contains(what, "can't access at least one of the keys")) {
    return {Error::access_denied, Next::give_up};
  }
  // Killed in the middle by an operator, before it wrote anything (SCRIPT KILL allows no other).
  if (contains(what, "Script killed by user")) return {Error::busy, Next::retry};
  return {Error::unexpected, Next::give_up};
}

std::string refused_command(std::string_view text, std::string_view script) {
  if (!contains(text, kCommandRefused)) return {};
  return called_in(line_of(text, script));
}

const std::string* wrong_key(std::string_view text, std::string_view script,
                             const std::vector<std::string>& keys) {
  constexpr std::string_view kKey = "KEYS[";
  const auto line = line_of(text, script);
  const auto key = line.find(kKey);
  if (key == std::string_view::npos) return nullptr;
  const auto digits = line.substr(key + kKey.size());
  std::size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number >= 1 && number <= keys.size() ? &keys[number - 1] : nullptr;
}

Failure failure_of(const std::exception_ptr& thrown) {
  Failure failure{Error::no_resources, {}};
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    failure.text = system_text(error.code().value());
  } catch (const boost::system::system_error& error) {
    failure.text = system_text(error.code().value());
  } catch (const std::exception& error) {
    failure.text = error.what();
  }
  return failure;
}

}  // namespace dlock::redis

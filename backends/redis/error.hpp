// SPDX-License-Identifier: Apache-2.0
//
// The errors of a Redis server, their dlock::errc values, and the meaning of each error reply for
// its command.
#pragma once

#include <boost/system/error_code.hpp>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "dlock/spi/answers.hpp"

namespace dlock::redis {

/// Values are permanent.
enum class Error {
  connection_lost = 1,
  no_answer = 2,
  not_connected = 3,
  unknown_host = 4,
  tls_failed = 5,
  access_denied = 6,
  authentication_failed = 7,
  no_scripting = 8,
  read_only = 9,
  loading = 10,
  busy = 11,
  out_of_memory = 12,
  refused = 13,
  foreign_format = 14,
  cluster = 15,
  unexpected = 16,
  closed = 17,
  held_with_other_token = 18,
  not_held = 19,
  token_too_high = 20,
  no_database = 21,
  configuration = 22,
  sealed = 23,
  no_places = 24,
  no_resources = 25,
  foreign_aside = 26,
  password_wanted = 27,
  self_test_failed = 28,
  newer_format = 29,
};

const boost::system::error_category& redis_category() noexcept;
boost::system::error_code make_error_code(Error error) noexcept;

/// The meaning of an error reply. Every error reply says that the command was not executed.
struct Verdict {
  enum class Next {
    retry,        ///< the server is busy: retry later
    give_up,      ///< trying again will not help
    load_script,  ///< NOSCRIPT: send its text
    reconnect,    ///< this is not the server we want to talk to any more
  };
  Error error = Error::unexpected;
  Next next = Next::give_up;
};

/// `text`: the reply without its leading `-`. Pure.
Verdict judge(std::string_view text);

/// The server says only in which line of a script a command was not allowed: names the command.
/// Empty if `text` is about something else. Pure.
std::string refused_command(std::string_view text, std::string_view script);

/// Returns the key of `keys` that a WRONGTYPE reply is about. Null: the reply does not say it.
/// Pure.
const std::string* wrong_key(std::string_view text, std::string_view script,
                             const std::vector<std::string>& keys);

/// Returns the transient failure for an exception that ended a coroutine.
Failure failure_of(const std::exception_ptr& thrown);

inline bool is_permanent(const Verdict& verdict) noexcept {
  return verdict.next == Verdict::Next::give_up;
}

}  // namespace dlock::redis

template <>
struct std::is_error_code_enum<dlock::redis::Error> : std::true_type {};
template <>
struct boost::system::is_error_code_enum<dlock::redis::Error> : std::true_type {};

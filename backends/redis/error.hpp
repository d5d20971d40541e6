// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong with a Redis server, how it maps to dlock::errc, and what an error reply means
// for the command that got it.
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

/// An error reply, judged. All of them say that the command was not done.
struct Verdict {
  enum class Next {
    retry,        ///< later: the server is busy with itself
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

/// The same for a WRONGTYPE: which of `keys` the command was about. Null: not told. Pure.
const std::string* wrong_key(std::string_view text, std::string_view script,
                             const std::vector<std::string>& keys);

/// What a coroutine was ended by, as a failure that passes.
Failure failure_of(const std::exception_ptr& thrown);

inline bool is_permanent(const Verdict& verdict) noexcept {
  return verdict.next == Verdict::Next::give_up;
}

}  // namespace dlock::redis

template <>
struct std::is_error_code_enum<dlock::redis::Error> : std::true_type {};
template <>
struct boost::system::is_error_code_enum<dlock::redis::Error> : std::true_type {};

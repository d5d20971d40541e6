// SPDX-License-Identifier: Apache-2.0
//
// The errors of a Memcached server. Values are permanent.
#pragma once

#include "dlock/error.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::memcached {

enum class Error {
  connection_lost = 1,
  no_answer = 2,
  not_connected = 3,
  unknown_host = 4,
  out_of_memory = 5,
  refused = 6,
  unexpected = 7,
  closed = 8,
  not_held = 9,
  held_with_other_token = 10,
  cannot_list = 11,
  bad_version = 12,
  token_broken = 13,
  access_denied = 14,
  line_busy = 15,
  connecting = 16,
  no_places = 17,
  server_error = 18,
  keeps_nothing = 19,
  other_list = 20,
  no_thread = 21,
  self_test_failed = 22,
  newer_format = 23,
};

const boost::system::error_category& category() noexcept;
boost::system::error_code make_error_code(Error error) noexcept;

inline Failure failure(Error error, std::string text = {}) {
  return {make_error_code(error), std::move(text)};
}

}  // namespace dlock::memcached

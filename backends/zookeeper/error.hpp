// SPDX-License-Identifier: Apache-2.0
//
// The errors of a ZooKeeper ensemble, and their dlock::errc values.
#pragma once

#include <boost/system/error_code.hpp>
#include <string>
#include <type_traits>

#include "dlock/spi/answers.hpp"

namespace dlock::zookeeper {

/// Values are permanent.
enum class Error {
  connection_lost = 1,
  no_answer = 2,
  not_connected = 3,
  unknown_host = 4,
  session_expired = 5,
  access_denied = 6,
  authentication_failed = 7,
  no_chroot = 8,
  session_timeout = 9,
  name_is_taken = 10,
  token_too_low = 11,
  unexpected = 12,
  closed = 13,
  held_with_other_token = 14,
  not_held = 15,
  out_of_descriptors = 16,
  sealed = 17,
  damaged_offset = 18,
  out_of_threads = 19,
  newer_format = 20,
};

const boost::system::error_category& zookeeper_category() noexcept;
boost::system::error_code make_error_code(Error error) noexcept;

/// Converts a return code of libzookeeper. ZOK becomes a clear error.
Failure failure_of(int rc, std::string_view doing);

/// Returns whether the library made up the code because the connection or the session ended. The
/// server may have executed the request.
bool is_loss(int rc) noexcept;

}  // namespace dlock::zookeeper

template <>
struct std::is_error_code_enum<dlock::zookeeper::Error> : std::true_type {};
template <>
struct boost::system::is_error_code_enum<dlock::zookeeper::Error> : std::true_type {};

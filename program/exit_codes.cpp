// SPDX-License-Identifier: Apache-2.0
#include "program/exit_codes.hpp"

namespace dlock::program {

Exit exit_of(const error_code& error) noexcept {
  if (!error) return Exit::ok;
  if (error == errc::timed_out || error == errc::not_holder || error == errc::not_found ||
      error == errc::queue_full) {
    return Exit::not_obtained;
  }
  if (error == errc::lock_lost) return Exit::lost;
  if (error == errc::invalid_name || error == errc::invalid_argument ||
      error == errc::not_supported) {
    return Exit::usage;
  }
  if (error == errc::protocol || error == errc::token_regressed || error == errc::corrupt_file ||
      error == errc::newer_format) {
    return Exit::foreign;
  }
  // Trying again does not help: wrong credentials, a route that does not name the plan of a
  // migration, a plan that was not started or has lost its gate.
  if (error == errc::config_invalid || error == errc::config_unsafe ||
      error == errc::access_denied || error == errc::moving || error == errc::not_configured ||
      error == errc::no_gate) {
    return Exit::config;
  }
  return Exit::unavailable;
}

}  // namespace dlock::program

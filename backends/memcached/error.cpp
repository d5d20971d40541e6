// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/error.hpp"
#include "dlock/spi/error_category.hpp"

namespace dlock::memcached {
namespace {

ErrorMeaning meaning(Error error) noexcept {
  switch (error) {
    case Error::connection_lost:
      return {errc::unavailable, "the connection to the Memcached server was lost"};
    case Error::no_answer:
      return {errc::unavailable, "the Memcached server did not answer in time"};
    case Error::not_connected:
      return {errc::unavailable, "the Memcached server cannot be reached; check address and port"};
    case Error::unknown_host:
      return {errc::unavailable, "the Memcached host name cannot be resolved"};
    case Error::out_of_memory:
      return {errc::unavailable,
              "the Memcached server has no memory left for a lock; raise its -m"};
    case Error::refused:
      return {errc::protocol, "the Memcached server refused the request"};
    case Error::unexpected:
      return {errc::protocol, "the Memcached server answered something unexpected"};
    case Error::closed:
      return {errc::closed, "the store was closed by us"};
    case Error::not_held:
      return {errc::not_found, "no client holds the lock"};
    case Error::held_with_other_token:
      return {errc::not_holder, "the lock is held with another token"};
    case Error::cannot_list:
      return {errc::not_supported,
              "a Memcached server cannot list its keys reliably: ask for the status of one name"};
    case Error::bad_version:
      return {errc::config_unsafe, "this Memcached version cannot be trusted with locks"};
    case Error::token_broken:
      return {errc::protocol,
              "the lock's token counter cannot issue a token; delete it, or let it expire"};
    case Error::access_denied:
      return {errc::access_denied,
              "the Memcached server demands authentication, which its text protocol lacks here"};
    case Error::line_busy:
      return {errc::unavailable, "earlier requests to the Memcached server are not answered yet"};
    case Error::connecting:
      return {errc::unavailable, "the connection to the Memcached server is still being made"};
    case Error::no_places:
      return {errc::unavailable,
              "the Memcached server takes no more connections: raise its -c, or use fewer"};
    case Error::server_error:
      return {errc::unavailable,
              "the Memcached server, or a proxy before it, could not carry out the request"};
    case Error::keeps_nothing:
      return {
          errc::unavailable,
          "what is stored on the Memcached server is not there: is it a proxy without servers?"};
    case Error::other_list:
      return {errc::config_unsafe,
              "other clients have another list or distribution of Memcached servers: use the same "
              "servers, order and distribution"};
    case Error::no_thread:
      return {errc::unavailable,
              "the system has no thread left: raise the limit (ulimit -u, pids.max)"};
    case Error::newer_format:
      return {errc::newer_format, "a newer version of dlock wrote it"};
    case Error::self_test_failed:
      return {errc::config_unsafe,
              "the Memcached server, or a proxy before it, ignores conditions"};
  }
  return {errc::protocol, "unknown Memcached error"};
}

}  // namespace

const boost::system::error_category& category() noexcept {
  return ErrorCategory<Error, meaning>::instance("dlock.memcached");
}

boost::system::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), category()};
}

}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

const char* text_of(Error error) {
  switch (error) {
    case Error::connection_lost:
      return "the connection to the Memcached server was lost";
    case Error::no_answer:
      return "the Memcached server did not answer in time";
    case Error::not_connected:
      return "the Memcached server cannot be reached; check address and port";
    case Error::unknown_host:
      return "the Memcached host name cannot be resolved";
    case Error::out_of_memory:
      return "the Memcached server has no memory left for a lock; raise its -m";
    case Error::refused:
      return "the Memcached server refused the request";
    case Error::unexpected:
      return "the Memcached server answered something unexpected";
    case Error::closed:
      return "the store was closed by us";
    case Error::not_held:
      return "nobody holds the lock";
    case Error::held_with_other_token:
      return "the lock is held with another token";
    case Error::cannot_list:
      return "a Memcached server cannot list its keys reliably: ask for the status of one name";
    case Error::bad_version:
      return "this Memcached version cannot be trusted with locks";
    case Error::token_broken:
      return "the lock's token counter cannot give a token; delete it, or let it expire";
    case Error::access_denied:
      return "the Memcached server demands authentication, which its text protocol lacks here";
    case Error::line_busy:
      return "earlier requests to the Memcached server are not answered yet";
    case Error::connecting:
      return "the connection to the Memcached server is still being made";
    case Error::no_places:
      return "the Memcached server takes no more connections: raise its -c, or use fewer";
    case Error::server_error:
      return "the Memcached server, or a proxy before it, could not carry out the request";
    case Error::keeps_nothing:
      return "what is stored on the Memcached server is not there: is it a proxy without servers?";
    case Error::other_list:
      return "other clients have another list of Memcached servers: give all the same, in the same "
             "order";
    case Error::no_thread:
      return "the system has no thread to give: raise the limit (ulimit -u, pids.max)";
  }
  return "unknown Memcached error";
}

errc condition_of(Error error) {
  switch (error) {
    case Error::connection_lost:
    case Error::no_answer:
    case Error::not_connected:
    case Error::unknown_host:
    case Error::out_of_memory:
    case Error::line_busy:
    case Error::connecting:
    case Error::no_places:
    case Error::server_error:
    case Error::keeps_nothing:
    case Error::no_thread:
      return errc::unavailable;
    case Error::refused:
    case Error::unexpected:
    case Error::token_broken:
      return errc::protocol;
    case Error::closed:
      return errc::closed;
    case Error::not_held:
      return errc::not_found;
    case Error::held_with_other_token:
      return errc::not_holder;
    case Error::cannot_list:
      return errc::not_supported;
    case Error::bad_version:
    case Error::other_list:
      return errc::config_unsafe;
    case Error::access_denied:
      return errc::access_denied;
  }
  return errc::protocol;
}

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "dlock.memcached"; }
  std::string message(int value) const override { return text_of(static_cast<Error>(value)); }
  boost::system::error_condition default_error_condition(int value) const noexcept override {
    return make_error_condition(condition_of(static_cast<Error>(value)));
  }
};

}  // namespace

const boost::system::error_category& category() noexcept {
  static const Category instance;
  return instance;
}

boost::system::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), category()};
}

}  // namespace dlock::memcached

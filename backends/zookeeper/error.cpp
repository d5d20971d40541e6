// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/error.hpp"
#include "dlock/spi/error_category.hpp"

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

namespace dlock::zookeeper {
namespace {

ErrorMeaning meaning(Error error) noexcept {
  switch (error) {
    case Error::connection_lost:
      return {errc::unavailable, "the connection to the ZooKeeper server was lost"};
    case Error::no_answer:
      return {errc::unavailable, "the ZooKeeper server did not answer in time"};
    case Error::not_connected:
      return {errc::unavailable,
              "no ZooKeeper server can be reached; check addresses, ports and the servers' quorum"};
    case Error::unknown_host:
      return {errc::unavailable, "none of the ZooKeeper host names can be resolved"};
    case Error::session_expired:
      return {errc::unavailable, "the ZooKeeper session has expired"};
    case Error::access_denied:
      return {errc::access_denied,
              "the ZooKeeper node's ACL does not let us do this; check user name and password"};
    case Error::authentication_failed:
      return {errc::access_denied, "the ZooKeeper server refused our authentication"};
    case Error::no_chroot:
      return {errc::config_invalid,
              "the chroot does not exist on the ZooKeeper server; create it or leave it out"};
    case Error::session_timeout:
      return {errc::config_invalid, "the ZooKeeper server does not grant this session_timeout"};
    case Error::name_is_taken:
      return {errc::protocol,
              "the lock's node belongs to another program: it is ephemeral or has no room for us"};
    case Error::token_too_low:
      return {errc::config_unsafe,
              "the fencing token would not be above the one that was asked for"};
    case Error::unexpected:
      return {errc::protocol, "the ZooKeeper server answered something unexpected"};
    case Error::closed:
      return {errc::closed, "the ZooKeeper session was closed by us"};
    case Error::held_with_other_token:
      return {errc::not_holder, "the lock is held with another token"};
    case Error::not_held:
      return {errc::not_found, "no client holds the lock"};
    case Error::out_of_descriptors:
      return {errc::unavailable,
              "this process or the system has run out of file descriptors or memory; check "
              "RLIMIT_NOFILE"};
    case Error::out_of_threads:
      return {errc::unavailable,
              "the ZooKeeper host names were not looked up: no thread can be made; check "
              "RLIMIT_NPROC and pids.max"};
    case Error::sealed:
      return {errc::moving, "a migration has sealed this lock: no client can hold it here"};
    case Error::newer_format:
      return {errc::newer_format, "a newer version of dlock wrote it"};
    case Error::damaged_offset:
      return {errc::protocol,
              "the node with the tokens' offset cannot be read; another program has written to it"};
  }
  return {errc::protocol, "unknown ZooKeeper error"};
}

Error error_of(int rc) {
  switch (rc) {
    case ZCONNECTIONLOSS:
    case ZRUNTIMEINCONSISTENCY:
    case ZSESSIONMOVED:
      return Error::connection_lost;
    case ZOPERATIONTIMEOUT:
    case ZTHROTTLEDOP:
      return Error::no_answer;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
      return Error::session_expired;
    case ZNOAUTH:
      return Error::access_denied;
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
      return Error::authentication_failed;
    case ZNOCHILDRENFOREPHEMERALS:
      return Error::name_is_taken;
    case ZCLOSING:
      return Error::closed;
    default:
      return Error::unexpected;
  }
}

}  // namespace

const boost::system::error_category& zookeeper_category() noexcept {
  return ErrorCategory<Error, meaning>::instance("dlock.zookeeper");
}

boost::system::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), zookeeper_category()};
}

Failure failure_of(int rc, std::string_view doing) {
  if (rc == ZOK) return {};
  return {error_of(rc), fmt::format("{}: {}", doing, zerror(rc))};
}

bool is_loss(int rc) noexcept {
  switch (rc) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZRUNTIMEINCONSISTENCY:
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCLOSING:
    case ZAUTHFAILED:
    case ZMARSHALLINGERROR:
    case ZSYSTEMERROR:
    case ZSESSIONMOVED:
    case ZTHROTTLEDOP:
      return true;
    default:
      return false;
  }
}

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// A request on its way. Owned by the library, whose callback deletes it: so also results of a
// transaction, which the library writes to, live in here.
#pragma once

#include <array>
#include <string>

#include "backends/zookeeper/wire/library_client.hpp"

namespace dlock::zookeeper {

struct LibraryClient::Request {
  Request(LibraryClient& owner, Env& env, bool is_write)
      : client(&owner), result(env), sent(env.now()), write(is_write) {}

  LibraryClient* client;  ///< null once the request was completed without the library
  PendingReply result;
  TimePoint sent;
  bool write;
  bool proof = false;
  std::string watched;    ///< of get_and_watch and exists_and_watch: the path
  bool always = false;    ///< of the latter: also a node that is not there
  std::string forgotten;  ///< of forget_watch: the path
  std::array<zoo_op_result_t, 4> results{};
  // Of change_if.
  Stat stamp{};
  std::string made;  ///< room for the path of what is created
};

}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// A request under way. The library owns it, and its callback deletes it. So the results of a
// transaction, which the library writes to, are also in here.
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
  std::string watched;    ///< path of get_and_watch and exists_and_watch
  bool always = false;    ///< for exists_and_watch: also a node that does not exist
  std::string forgotten;  ///< path of forget_watch
  std::array<zoo_op_result_t, 4> results{};
  // For change_if.
  Stat stamp{};
  std::string made;  ///< buffer for the path of the created node
};

}  // namespace dlock::zookeeper

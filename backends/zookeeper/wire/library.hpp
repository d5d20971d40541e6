// SPDX-License-Identifier: Apache-2.0
//
// Where a backend's sessions come from, and what else it asks servers for: the C client's, or the
// simulation's.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "backends/zookeeper/wire/client.hpp"

namespace dlock::zookeeper {

class Library {
 public:
  virtual ~Library() = default;
  virtual std::shared_ptr<Client> make_client(Env& env, Client::Options options,
                                              Client::Listener& listener) = 0;
  /// As four_letter.hpp says.
  virtual asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                                  TimePoint deadline) = 0;
};

}  // namespace dlock::zookeeper

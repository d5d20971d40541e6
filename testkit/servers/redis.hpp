// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "testkit/servers/server.hpp"

namespace dlock::testkit {

/// Debian's redis-server. Persistence is off unless an option turns it on.
class RedisServer : public Server {
 public:
  /// `options` go to the command line as they are, as in {"--maxmemory", "4mb"}.
  explicit RedisServer(std::vector<std::string> options = {});

  std::string url() const override;
  bool answers() override;

 protected:
  std::vector<std::string> command() override;

 private:
  std::vector<std::string> options_;
};

}  // namespace dlock::testkit

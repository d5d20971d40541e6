// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "testkit/servers/server.hpp"

namespace dlock::testkit {

/// Debian's memcached. Its data is gone after each stop, as always with memcached.
class MemcachedServer : public Server {
 public:
  /// `options` go to the command line as they are, as in {"-m", "64", "-M"}.
  explicit MemcachedServer(std::vector<std::string> options = {});

  std::string url() const override;
  bool answers() override;

 protected:
  std::vector<std::string> command() override;

 private:
  std::vector<std::string> options_;
};

}  // namespace dlock::testkit

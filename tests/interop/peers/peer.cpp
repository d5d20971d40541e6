// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/peers/peer.hpp"

#include <filesystem>

#include "testkit/servers/server.hpp"

namespace dlock::interop {

std::ostream& operator<<(std::ostream& out, const Peer* peer) { return out << peer->name; }

const std::vector<const Peer*>& sharing_peers() {
  static const std::vector<const Peer*> all{curator(),       kazoo(),          redis_py(),
                                            node_redlock(),  node_redlock_5(), tooz_redis(),
                                            tooz_memcached()};
  return all;
}

testkit::ProcessOptions python(const std::string& file, std::vector<std::string> arguments) {
  // The modules are Debian's, and so is the Python that finds them.
  const std::string interpreter = "/usr/bin/python3";
  if (!std::filesystem::exists(interpreter)) throw testkit::MissingPackage(interpreter, "python3");
  testkit::ProcessOptions options;
  const auto program = std::string(DLOCK_INTEROP_CLIENTS) + "/" + file;
  options.argv = {interpreter, "-B", program};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace dlock::interop

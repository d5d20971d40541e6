// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: names that stand in the file DLOCK_TEST_HOSTS (lines of address and name) are
// resolved by it, as /etc/hosts would; it may change while the process runs. A mount namespace over
// /etc/hosts would do without a shim, but not everywhere where the tests run.
#include <dlfcn.h>
#include <netdb.h>

#include <cstdlib>
#include <fstream>
#include <string>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const char* const file = std::getenv("DLOCK_TEST_HOSTS");
  if (node != nullptr && file != nullptr) {
    std::ifstream hosts(file);
    for (std::string address, name; hosts >> address >> name;) {
      if (name == node) return real(address.c_str(), service, hints, result);
    }
  }
  return real(node, service, hints, result);
}

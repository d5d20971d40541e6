// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: names in the file DLOCK_TEST_HOSTS (lines of address and name) are resolved by
// it, as by /etc/hosts. A name with several lines has several addresses. The address `silent` is a
// name server that never answers: the file DLOCK_TEST_HOSTS.asked is made, and the call does not
// return. The file may change while the process runs. Needs no mount namespace, unlike another
// /etc/hosts.
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const char* const file = std::getenv("DLOCK_TEST_HOSTS");
  if (node == nullptr || file == nullptr) return real(node, service, hints, result);
  std::ifstream hosts(file);
  addrinfo* first = nullptr;
  addrinfo** end = &first;
  for (std::string address, name; hosts >> address >> name;) {
    if (name != node) continue;
    if (address == "silent") {
      std::ofstream(file + std::string(".asked")).close();
      for (;;) ::pause();
    }
    const int failed = real(address.c_str(), service, hints, end);
    if (failed != 0) return failed;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  if (first == nullptr) return real(node, service, hints, result);
  *result = first;
  return 0;
}

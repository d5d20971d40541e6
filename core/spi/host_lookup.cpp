// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/net/host_lookup.hpp"

#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {

// Not Asio's resolver: its thread receives the application's signals, is joined at the end, and is
// missing by an exception.
std::shared_ptr<const HostLookup> HostLookup::start(Env& env, const Endpoint& server, Job done) {
  auto lookup = std::make_shared<HostLookup>();
  Job job = [lookup, server] {
    lookup->begun_ = true;
    try {
      lookup->ask(server);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      lookup->error_ = error.what();
    }
  };
  Job end = [lookup, done = std::move(done)]() mutable {
    lookup->ended_ = true;
    done();
  };
  env.run_unbounded(std::move(job), std::move(end));
  return lookup;
}

void HostLookup::ask(const Endpoint& server) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int failed = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &all);
  if (failed != 0) {
    error_ = failed == EAI_SYSTEM ? system_text(errno) : ::gai_strerror(failed);
    return;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(all, &::freeaddrinfo);
  for (const auto* one = all; one != nullptr; one = one->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
    endpoint.resize(one->ai_addrlen);
    endpoint.port(server.port);
    endpoints_.push_back(endpoint);
  }
  if (endpoints_.empty()) error_ = "the name has no address";
}

}  // namespace dlock::inline v0

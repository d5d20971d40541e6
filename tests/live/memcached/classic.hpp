// SPDX-License-Identifier: Apache-2.0
//
// A manager that uses no meta commands, as before a server or a proxy that knows none.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backends/memcached/backend.hpp"
#include "backends/memcached/wire/text_client.hpp"
#include "dlock/spi/descriptor.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {

inline std::unique_ptr<Backend> create_classic(const StoreOptions& options, Env& env,
                                               EventSink& sink) {
  const memcached::MakeClient make = [](Env& at, Endpoint server, std::uint32_t flags) {
    return std::make_unique<memcached::TextClient>(at, std::move(server), flags, false);
  };
  return std::make_unique<memcached::MemcachedBackend>(options, env, sink, make);
}

inline LockManager open_classic(const std::string& url) {
  static const BackendDescriptor descriptor = [] {
    auto classic = memcached::backend();
    classic.create = &create_classic;
    return classic;
  }();
  OpenOptions options;
  options.backends = {&descriptor};
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, std::move(options));
}

}  // namespace dlock::testkit

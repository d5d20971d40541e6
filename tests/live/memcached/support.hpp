// SPDX-License-Identifier: Apache-2.0
//
// What the Memcached live tests share: managers over this backend alone, a plain look at the
// server, and a recorder of what is told to a holder.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/memcached.hpp"
#include "testkit/servers/memcached.hpp"
#include "tests/support/state_log.hpp"

namespace dlock::testkit {

using namespace std::chrono_literals;

/// What managers warned of, from any thread.
class Warnings {
 public:
  void add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    all_.emplace_back(text);
  }
  int count(std::string_view part) {
    const std::lock_guard lock(mutex_);
    int found = 0;
    for (const auto& text : all_) found += text.find(part) != std::string::npos ? 1 : 0;
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

inline LockManager open_memcached(const std::string& url,
                                  std::shared_ptr<Warnings> warnings = nullptr) {
  OpenOptions options;
  options.backends = {&memcached::backend()};
  options.log = [warnings](LogLevel, std::string_view text) {
    if (warnings) warnings->add(text);
  };
  return LockManager::open(url, std::move(options));
}

inline std::string memcached_url(std::uint16_t port, std::string_view rest = {}) {
  return fmt::format("memcached://127.0.0.1:{}{}", port, rest);
}

/// One command of the text protocol, on a connection of its own.
inline std::string talk(std::uint16_t port, const std::string& command, std::string_view enough) {
  return ask(port, command + "\r\n", enough, patience());
}
inline bool has_key(std::uint16_t port, const std::string& key) {
  return talk(port, "get " + key, "END\r\n").find("VALUE ") != std::string::npos;
}
inline void delete_key(std::uint16_t port, const std::string& key) {
  talk(port, "delete " + key, "\r\n");
}
/// Whether a request takes that key, by a meta command.
inline bool takes(std::string_view bytes, const std::string& key) {
  const auto at = bytes.find("ms " + key + " ");
  return at != bytes.npos && bytes.find(" ME\r\n", at) != bytes.npos;
}
inline std::int64_t stat(std::uint16_t port, const std::string& name) {
  const auto text = talk(port, "stats", "END\r\n");
  const auto at = text.find("STAT " + name + " ");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + 6 + name.size()));
}

class MemcachedTest : public testing::Test {
 protected:
  void SetUp() override { server_.start(); }
  std::uint16_t port() const { return server_.port(); }
  std::string url(std::string_view rest = {}) const { return memcached_url(port(), rest); }

  MemcachedServer server_;
};

}  // namespace dlock::testkit

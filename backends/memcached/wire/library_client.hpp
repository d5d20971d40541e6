// SPDX-License-Identifier: Apache-2.0
//
// libmemcached for one server: text protocol, one connection, each call bounded. The handle blocks
// its thread and is for one thread alone (Worker's).
//
//  - NO_BLOCK does not make it asynchronous; it makes POLL_TIMEOUT the limit of every wait.
//  - After an answer that did not come in time the handle is thrown away: what came late would be
//    taken for the answer to the next request, and libmemcached keeps a failed server disabled for
//    seconds.
//  - It knows one server only. It never ejects, fails over or re-hashes: that makes second owners.
//  - Its sockets are closed on exec. A fork()ed child keeps a copy that it never uses; no lock
//    hangs on a connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/client.hpp"

struct memcached_st;

namespace dlock::memcached {

class LibraryClient final : public Client {
 public:
  LibraryClient(Env& env, Endpoint server, std::uint32_t flags);
  ~LibraryClient() override;
  LibraryClient(const LibraryClient&) = delete;
  LibraryClient& operator=(const LibraryClient&) = delete;

  void open() override;
  void drop() override;
  bool is_open() const noexcept override { return handle_ != nullptr; }

  Answer add(const std::string& key, const std::string& value, std::time_t exptime) override;
  Answer cas(const std::string& key, const std::string& value, std::time_t exptime,
             std::uint64_t cas) override;
  Number increment(const std::string& key, std::uint64_t by) override;
  Found gets(const std::vector<std::string>& keys) override;
  Answer stats(const char* what, ServerInfo& into) override;

 private:
  struct Free {
    void operator()(memcached_st* handle) const noexcept;
  };

  /// False: no time is left, nothing must be sent.
  bool limit();
  Answer judge(int code);

  Env& env_;
  const Endpoint server_;
  const std::uint32_t flags_;
  std::unique_ptr<memcached_st, Free> handle_;
};

}  // namespace dlock::memcached

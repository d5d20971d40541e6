// SPDX-License-Identifier: Apache-2.0
//
// HostLookup: resolves one host name on a helper thread. A name server that never answers keeps
// that thread; no caller waits for the thread, not even the end of the process.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::inline v0 {

/// Loop only.
class HostLookup {
 public:
  /// Starts a lookup of `server.host`. Calls `done` on the loop when it has ended, never inside
  /// this call. Callers need a deadline: the lookup may never end.
  static std::shared_ptr<const HostLookup> start(Env& env, const Endpoint& server, Job done);

  /// Returns whether a helper thread has begun to ask.
  bool has_begun() const noexcept { return begun_; }
  bool has_ended() const noexcept { return ended_; }
  /// The addresses with the server's port, in the resolver's order. Read only after the end.
  const std::vector<asio::ip::tcp::endpoint>& endpoints() const noexcept { return endpoints_; }
  /// The reason why no address is known; empty on success. Read only after the end.
  const std::string& error() const noexcept { return error_; }

 private:
  void ask(const Endpoint& server);

  std::atomic<bool> begun_ = false;
  bool ended_ = false;  ///< written on the loop only
  std::vector<asio::ip::tcp::endpoint> endpoints_;
  std::string error_;
};

}  // namespace dlock::inline v0

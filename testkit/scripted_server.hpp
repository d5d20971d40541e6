// SPDX-License-Identifier: Apache-2.0
//
// A server on loopback that says what a test tells it to, to whoever connects: for peers that lie.
//
//   ScriptedServer server([](std::string& received) { return Answer{"+OK\r\n"}; });
//   open("redis://127.0.0.1:" + std::to_string(server.port()));
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dlock::testkit {

/// What to say to what has come.
struct ScriptedAnswer {
  std::string bytes{};
  /// Said again and again until the peer hangs up, or has got this many bytes in all.
  std::string endless{};
  std::size_t endless_bytes = std::size_t{1} << 30U;
  bool hang_up = false;  ///< after that
};

/// Connections are served on threads of their own; a script is called from all of them.
class ScriptedServer {
 public:
  /// Called with all bytes of a connection that no call has taken (erased) yet, whenever more come.
  /// An empty answer: silence.
  using Script = std::function<ScriptedAnswer(std::string& received)>;

  /// `greeting` is said, or done, as soon as somebody has connected.
  explicit ScriptedServer(Script script, ScriptedAnswer greeting = {});
  /// Hangs up on everybody.
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;
  std::uint64_t bytes_sent() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace dlock::testkit

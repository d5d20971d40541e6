// SPDX-License-Identifier: Apache-2.0
#include "testkit/scripted_server.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "testkit/sockets.hpp"

namespace dlock::testkit {

struct ScriptedServer::Shared {
  Shared(Script what, ScriptedAnswer first) : script(std::move(what)), greeting(std::move(first)) {}

  bool say(TcpStream& stream, const std::string& bytes) {
    sent += bytes.size();
    return stream.send(bytes);
  }

  void serve(TcpStream stream) {
    constexpr std::chrono::milliseconds kTurn{100};
    std::string received;
    if (!greeting.bytes.empty() && !say(stream, greeting.bytes)) return;
    if (greeting.hang_up) return;
    while (!stopping) {
      const auto until = within(kTurn);
      const auto more = stream.receive_some(until);
      if (more.empty()) {
        if (Clock::now() < until) return;  // the end; else silence
        continue;
      }
      received += more;
      const auto answer = script(received);
      if (!answer.bytes.empty() && !say(stream, answer.bytes)) return;
      for (std::size_t said = 0;
           !answer.endless.empty() && said < answer.endless_bytes && !stopping;
           said += answer.endless.size()) {
        if (!say(stream, answer.endless)) return;
      }
      if (answer.hang_up) return;
    }
  }

  void listen() {
    std::vector<std::thread> peers;
    while (!stopping) {
      auto stream = listener.accept(within(std::chrono::milliseconds(50)));
      if (!stream) continue;
      ++connections;
      peers.emplace_back([this, peer = std::make_shared<TcpStream>(std::move(*stream))] {
        serve(std::move(*peer));
      });
    }
    for (auto& peer : peers) peer.join();
  }

  const Script script;
  const ScriptedAnswer greeting;
  TcpListener listener;
  std::atomic<bool> stopping{false};
  std::atomic<std::size_t> connections{0};
  std::atomic<std::uint64_t> sent{0};
  std::thread thread;
};

ScriptedServer::ScriptedServer(Script script, ScriptedAnswer greeting)
    : shared_(std::make_shared<Shared>(std::move(script), std::move(greeting))) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->listen(); });
}

ScriptedServer::~ScriptedServer() {
  shared_->stopping = true;
  shared_->thread.join();
}

std::uint16_t ScriptedServer::port() const { return shared_->listener.port(); }
std::size_t ScriptedServer::connections() const { return shared_->connections; }
std::uint64_t ScriptedServer::bytes_sent() const { return shared_->sent; }

}  // namespace dlock::testkit

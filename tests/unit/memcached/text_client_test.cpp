// SPDX-License-Identifier: Apache-2.0
//
// The client of one server, on a real socket. A scripted server runs on the same thread.
#include "backends/memcached/wire/text_client.hpp"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/loop/real_env.hpp"

namespace dlock::memcached {
namespace {

using asio::ip::tcp;

/// Accepts one connection. Calls `answer` with the bytes that arrived since the last answer, and
/// sends the text that it returns. An empty text means that more bytes have to arrive.
class OneClientServer {
 public:
  using Script = std::function<std::string(const std::string& received)>;

  OneClientServer(asio::io_context& context, Script answer)
      : acceptor_(context, {asio::ip::address_v4::loopback(), 0}), answer_(std::move(answer)) {
    asio::co_spawn(context, serve(), asio::detached);
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  asio::awaitable<void> serve() try {
    auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
    std::string received;
    while (true) {
      std::string bytes(4096, '\0');
      const auto size = co_await socket.async_read_some(asio::buffer(bytes), asio::use_awaitable);
      received.append(bytes, 0, size);
      const auto text = answer_(received);
      if (text.empty()) continue;
      received.clear();
      co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // NOLINT(bugprone-empty-catch): it has hung up
  }

  tcp::acceptor acceptor_;
  const Script answer_;
};

/// The outcomes of two adds. The server answers the add `n` with the tag of the add `order[n]`.
std::vector<Outcome> adds_answered(std::vector<std::size_t> order) {
  core::RealEnv env;
  std::vector<std::string> tags;
  OneClientServer server(env.context(), [&](const std::string& received) -> std::string {
    if (received.ends_with("mn\r\n")) return "END\r\nMN\r\n";
    const auto tag = received.find(" O");
    if (!received.ends_with("\r\nx\r\n") || tag == std::string::npos) return {};
    tags.push_back(received.substr(tag, received.find_first_of(" \r", tag + 1) - tag));
    return "HD c7" + tags.at(order.at(tags.size() - 1)) + "\r\n";
  });
  TextClient client(env, {"127.0.0.1", server.port()}, 0, true);
  std::vector<Outcome> outcomes;
  const auto work = [&]() -> asio::awaitable<void> {
    const auto until = env.now() + std::chrono::seconds(60);
    const auto opened = co_await client.open(until);
    EXPECT_TRUE(opened.done()) << opened.failure.text;
    ServerInfo info;
    info.version = "1.6.18";
    const auto read = co_await client.settings(info, until);
    EXPECT_TRUE(read.done()) << read.failure.text;
    for (const char* key : {"a", "b"}) {
      const auto answer = co_await client.add(key, "x", 10, until);
      outcomes.push_back(answer.outcome);
    }
    env.context().stop();
  };
  asio::co_spawn(env.executor(), work(), asio::detached);
  env.context().run();
  return outcomes;
}

TEST(MemcachedTextClient, AnAnswerWithTheTagOfItsRequestIsAccepted) {
  EXPECT_EQ(adds_answered({0, 1}), (std::vector{Outcome::done, Outcome::done}));
}

TEST(MemcachedTextClient, AnAnswerWithTheTagOfAnEarlierRequestIsRefused) {
  EXPECT_EQ(adds_answered({0, 0}), (std::vector{Outcome::done, Outcome::unknown}));
}

}  // namespace
}  // namespace dlock::memcached

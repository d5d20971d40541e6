// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/four_letter.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "backends/zookeeper/wire/address.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

struct Conversation : std::enable_shared_from_this<Conversation> {
  Conversation(Env& env, std::string question)
      : socket(env.executor()), word(std::move(question)), finished(env) {}

  void start(const tcp::endpoint& server) {
    socket.async_connect(server, [self = shared_from_this()](error_code ec) {
      if (ec) return self->finished.set(true);
      self->ask();
    });
  }
  void ask() {
    asio::async_write(socket, asio::buffer(word),
                      [self = shared_from_this()](error_code ec, std::size_t) {
                        if (ec) return self->finished.set(true);
                        self->listen();
                      });
  }
  // The server closes the connection after its answer.
  void listen() {
    asio::async_read(
        socket, asio::dynamic_buffer(answer, std::size_t{64} * 1024),
        [self = shared_from_this()](error_code, std::size_t) { self->finished.set(true); });
  }

  tcp::socket socket;
  std::string word;
  std::string answer;
  OneShot<bool> finished;
};

}  // namespace

asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                        TimePoint deadline) {
  const auto server = endpoint_of(address);
  if (!server) co_return std::string();
  const auto conversation = std::make_shared<Conversation>(env, std::move(word));
  conversation->start(*server);
  const bool finished = (co_await conversation->finished.get_until(deadline)).has_value();
  error_code ignored;
  conversation->socket.close(ignored);
  co_return finished ? conversation->answer : std::string();
}

}  // namespace dlock::zookeeper

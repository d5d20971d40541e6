// SPDX-License-Identifier: Apache-2.0
//
// How the C client is driven, against a server that answers as a test likes.
#include "backends/zookeeper/wire/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zookeeper/proto.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/wire/library_client.hpp"
#include "core/loop/real_env.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

std::string big_endian(std::int64_t value, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (auto& byte : text) byte = static_cast<char>(value >> (8 * --bytes));
  return text;
}
std::string int_of(std::int64_t value) { return big_endian(value, 4); }
std::string long_of(std::int64_t value) { return big_endian(value, 8); }
std::string string_of(const std::string& text) {
  return int_of(static_cast<std::int64_t>(text.size())) + text;
}
std::string reply(const std::string& xid, const std::string& body) {
  return string_of(xid + long_of(1) + int_of(ZOK) + body);
}

constexpr std::size_t kStatSize = 68;
constexpr auto kSession = 60s;  // what is only found by the clock comes 20 s later

/// Of a request: the answer, or several messages that come together.
using Answers = std::function<std::string(const std::string& xid, std::int32_t type)>;

asio::awaitable<std::string> read_message(tcp::socket& socket) {
  std::string head(4, '\0');
  co_await asio::async_read(socket, asio::buffer(head), asio::use_awaitable);
  std::size_t size = 0;
  for (const char byte : head) size = (size << 8U) | static_cast<unsigned char>(byte);
  std::string body(size, '\0');
  co_await asio::async_read(socket, asio::buffer(body), asio::use_awaitable);
  co_return body;
}

asio::awaitable<void> serve(tcp::acceptor& acceptor, Answers answers, const bool& hangs_up) {
  auto socket = co_await acceptor.async_accept(asio::use_awaitable);
  co_await read_message(socket);
  const auto timeout = std::chrono::milliseconds(kSession).count();
  const auto welcome =
      string_of(int_of(0) + int_of(timeout) + long_of(1) + string_of(std::string(16, 'p')) + '\0');
  co_await asio::async_write(socket, asio::buffer(welcome), asio::use_awaitable);
  for (;;) {
    const auto request = co_await read_message(socket);
    const auto answer = answers(request.substr(0, 4), request[7]);
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    if (hangs_up) co_return;
  }
}

std::string stat_or_nothing(const std::string& xid, std::int32_t type) {
  return reply(xid, std::string(type == ZOO_EXISTS_OP ? kStatSize : 0, '\0'));
}

struct Heard final : Client::Listener {
  void on_connected() override {}
  void on_disconnected() override { disconnected = true; }
  void on_session_over(bool) override {}
  void on_watch(const std::string&, WatchEvent event) override { watch.push_back(event); }
  void on_answer(TimePoint, TimePoint, bool) override {}

  std::vector<WatchEvent> watch;
  bool disconnected = false;
};

class ZooKeeperClient : public testing::Test {
 protected:
  ~ZooKeeperClient() override {
    bool closed = false;
    client_->close([&closed] { closed = true; });
    run_until([&closed] { return closed; });
  }

  void start(Answers answers) {
    asio::co_spawn(env_.context(), serve(acceptor_, std::move(answers), hangs_up_), asio::detached);
    Client::Options options;
    options.addresses = "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
    options.session_timeout = kSession;
    client_ = c_library().make_client(env_, options, heard_);
    ASSERT_TRUE(client_->start());
    ASSERT_TRUE(run_until([this] { return client_->connected(); }));
  }

  bool run_until(const std::function<bool()>& met) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!met() && std::chrono::steady_clock::now() < end) env_.context().run_one_for(100ms);
    return met();
  }

  core::RealEnv env_;
  tcp::acceptor acceptor_{env_.context(), {asio::ip::address_v4::loopback(), 0}};
  bool hangs_up_ = false;  ///< after the next answer
  Heard heard_;
  std::shared_ptr<Client> client_;
};

TEST_F(ZooKeeperClient, HearsWhatComesTogetherWithTheLastAnswer) {
  start([](const std::string& xid, std::int32_t type) {
    const auto answer = stat_or_nothing(xid, type);
    if (type != ZOO_EXISTS_OP) return answer;
    const auto gone = int_of(ZOO_DELETED_EVENT) + int_of(ZOO_CONNECTED_STATE) + string_of("/a");
    return answer + reply(int_of(-1), gone);
  });
  client_->exists_and_watch("/a");
  EXPECT_TRUE(run_until([this] { return heard_.watch.size() == 2; }));
  EXPECT_THAT(heard_.watch, testing::ElementsAre(WatchEvent::set, WatchEvent::deleted));
}

TEST_F(ZooKeeperClient, SeesAServerThatHangsUpRightAfterTheLastAnswer) {
  start(stat_or_nothing);
  hangs_up_ = true;
  const auto pending = client_->exists("/a");
  EXPECT_TRUE(run_until([this] { return heard_.disconnected; }));
}

}  // namespace
}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// How the client dials and leaves servers, what it reports, and what it sends: with servers
// that behave as a test wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zookeeper/proto.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/wire/client.hpp"
#include "backends/zookeeper/wire/library_client.hpp"
#include "core/loop/real_env.hpp"
#include "tests/support/counting_env.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

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

/// Reads the fields of a request.
class Fields {
 public:
  explicit Fields(std::string text) : rest_(std::move(text)) {}
  std::int32_t number() {
    std::uint32_t value = 0;
    for (const char byte : take(4)) value = (value << 8U) | static_cast<unsigned char>(byte);
    return static_cast<std::int32_t>(value);
  }
  bool flag() { return take(1) != std::string(1, '\0'); }
  std::string text() {
    const auto size = number();
    return size < 0 ? std::string() : take(static_cast<std::size_t>(size));
  }
  void skip_acl() {
    for (auto left = number(); left > 0; --left) {
      number();
      text();
      text();
    }
  }

 private:
  std::string take(std::size_t size) {
    auto head = rest_.substr(0, size);
    rest_.erase(0, size);
    return head;
  }
  std::string rest_;
};

/// Returns one operation in words: `create /a=data f3`, `set /a=data v-1`, `delete /a v-1`.
std::string words_of(std::int32_t type, Fields& fields) {
  const auto path = type == 14 ? std::string() : fields.text();
  const auto version = [&] { return " v" + std::to_string(fields.number()); };
  switch (type) {
    case ZOO_CREATE_OP:
    case 15:    // with a stat
    case 19: {  // for a container
      const auto data = fields.text();
      fields.skip_acl();
      return "create " + path + "=" + data + " f" + std::to_string(fields.number());
    }
    case ZOO_DELETE_OP:
      return "delete " + path + version();
    case ZOO_EXISTS_OP:
      return "exists " + path + (fields.flag() ? " watched" : "");
    case ZOO_GETDATA_OP:
      return "get " + path + (fields.flag() ? " watched" : "");
    case ZOO_SETDATA_OP: {
      const auto data = fields.text();
      return "set " + path + "=" + data + version();
    }
    case ZOO_SYNC_OP:
      return "sync " + path;
    case ZOO_GETCHILDREN2_OP:
      return "children " + path + (fields.flag() ? " watched" : "");
    case ZOO_CHECK_OP:
      return "check " + path + version();
    case 18:
      return "forget " + path + " t" + std::to_string(fields.number());
    case ZOO_MULTI_OP: {
      std::string all = "multi:";
      for (;;) {
        const auto one = fields.number();
        if (fields.flag()) return all;
        fields.number();
        all += " " + words_of(one, fields) + ";";
      }
    }
    default:
      return "request " + std::to_string(type);
  }
}

enum class Manner {
  answers,   ///< each request
  silent,    ///< lets clients in and answers nothing
  mute,      ///< accepts connections and does not answer the introduction
  hangs_up,  ///< after the introduction
  babbles,   ///< answers the introduction with a text
};

struct Seen {
  TimePoint accepted;
  std::vector<std::pair<TimePoint, std::string>> requests{};
  std::optional<TimePoint> closed{};

  Duration lasted() const { return closed.value_or(accepted) - accepted; }
  /// From the first request to the end.
  Duration waited() const { return closed.value_or(accepted) - requests.at(0).first; }
};

class Server {
 public:
  Server(asio::io_context& context, std::chrono::milliseconds timeout)
      : acceptor_(context, {asio::ip::address_v4::loopback(), 0}), timeout_(timeout) {
    asio::co_spawn(context, accept(), asio::detached);
  }
  const std::string& address() const { return address_; }
  /// Refuses connections from now on.
  void close() { acceptor_.close(); }

  Manner manner = Manner::answers;
  std::deque<Seen> seen;
  /// Behind the answer to the next request.
  std::string after_answer;

 private:
  static asio::awaitable<std::string> read_message(tcp::socket& socket) {
    std::string head(4, '\0');
    co_await asio::async_read(socket, asio::buffer(head), asio::use_awaitable);
    std::string body(static_cast<std::size_t>(Fields(head).number()), '\0');
    co_await asio::async_read(socket, asio::buffer(body), asio::use_awaitable);
    co_return body;
  }
  asio::awaitable<void> accept() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      seen.push_back({BoottimeClock::now()});
      asio::co_spawn(
          acceptor_.get_executor(), serve(std::move(socket), seen.back()),
          [at = &seen.back()](const std::exception_ptr&) { at->closed = BoottimeClock::now(); });
    }
  }
  asio::awaitable<void> serve(tcp::socket socket, Seen& here) {
    co_await read_message(socket);
    if (manner == Manner::hangs_up) co_return;
    std::string hello = string_of(int_of(0) + int_of(timeout_.count()) + long_of(1) +
                                  string_of(std::string(16, 'p')) + '\0');
    if (manner == Manner::babbles) hello = "HTTP/1.1 400 Bad Request\r\n\r\n";
    if (manner != Manner::mute) {
      co_await asio::async_write(socket, asio::buffer(hello), asio::use_awaitable);
    }
    for (;;) {
      Fields request(co_await read_message(socket));
      const auto xid = request.number();
      const auto type = request.number();
      if (type != ZOO_PING_OP)
        here.requests.emplace_back(BoottimeClock::now(), words_of(type, request));
      if (manner != Manner::answers) continue;
      const std::string stat(type == ZOO_EXISTS_OP ? 68 : 0, '\0');
      const auto answer = string_of(int_of(xid) + long_of(1) + int_of(ZOK) + stat) +
                          std::exchange(after_answer, {});
      co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    }
  }

  tcp::acceptor acceptor_;
  const std::string address_ = "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  std::chrono::milliseconds timeout_;
};

struct Heard final : Client::Listener {
  void on_connected() override {
    ++connected;
    if (then) then();
  }
  void on_disconnected() override { ++disconnected; }
  void on_attempt_failed() override { ++failed; }
  void on_session_over(bool) override { ++over; }
  void on_watch(const std::string& path, WatchEvent event) override {
    watches.emplace_back(path, event);
  }
  void on_answer(TimePoint sent, TimePoint received, bool committed) override {
    EXPECT_LE(sent, received);
    answers.push_back(committed);
  }

  int connected = 0, disconnected = 0, failed = 0, over = 0;
  std::vector<std::pair<std::string, WatchEvent>> watches;
  std::vector<bool> answers;
  std::function<void()> then;
};

constexpr auto kSession = 2000ms;

class ZooKeeperLink : public testing::Test {
 protected:
  ~ZooKeeperLink() override {
    if (client_) close();
    EXPECT_EQ(env_.timers(), 0U) << "a timer is left";
  }

  void start(const std::string& addresses, std::chrono::milliseconds session = kSession) {
    Client::Options options;
    options.addresses = addresses;
    options.session_timeout = session;
    client_ = c_library().make_client(env_, options, heard_);
    ASSERT_TRUE(client_->start());
  }
  void connect(const std::string& addresses, std::chrono::milliseconds session = kSession) {
    start(addresses, session);
    ASSERT_TRUE(run_until([this] { return client_->connected(); }));
  }
  void close() {
    bool closed = false;
    client_->close([&closed] { closed = true; });
    EXPECT_TRUE(run_until([&closed] { return closed; }));
    client_.reset();
  }
  bool run_until(const std::function<bool()>& met) {
    const auto end = std::chrono::steady_clock::now() + 15s;
    while (!met() && std::chrono::steady_clock::now() < end) real_.context().run_one_for(10ms);
    return met();
  }

  core::RealEnv real_;
  tests::CountingEnv env_{real_};
  Server server_{real_.context(), kSession};
  Server other_{real_.context(), kSession};
  Heard heard_;
  std::shared_ptr<Client> client_;
};

/// `at_least`, and not much longer.
auto about(std::chrono::milliseconds at_least) {
  return AllOf(Ge(Duration(at_least)), Lt(Duration(at_least * 7 / 4)));
}

TEST_F(ZooKeeperLink, LeavesAServerThatDoesNotAnswerLaterEachTime) {
  heard_.then = [this] { client_->exists("/a"); };
  server_.manner = Manner::silent;
  connect(server_.address());
  ASSERT_TRUE(run_until([&] { return server_.seen.size() == 3; }));
  EXPECT_THAT(server_.seen[0].waited(), about(400ms));
  EXPECT_THAT(server_.seen[1].waited(), about(800ms));
  // An answer in time ends the patience with a slow link.
  server_.manner = Manner::answers;
  ASSERT_TRUE(run_until([&] { return !heard_.answers.empty(); }));
  server_.manner = Manner::silent;
  client_->exists("/b");
  const auto asked = env_.now();
  const auto before = heard_.disconnected;
  ASSERT_TRUE(run_until([&] { return heard_.disconnected > before; }));
  EXPECT_THAT(env_.now() - asked, about(400ms));
  EXPECT_EQ(heard_.over, 0);
}

TEST_F(ZooKeeperLink, LeavesAServerThatDoesNotLetItInLaterEachRound) {
  server_.manner = other_.manner = Manner::mute;
  start(server_.address() + "," + other_.address());
  std::vector<const Seen*> all;
  ASSERT_TRUE(run_until([&] {
    all.clear();
    for (const auto* server : {&server_, &other_}) {
      for (const auto& one : server->seen) all.push_back(&one);
    }
    return all.size() == 4;
  }));
  std::sort(all.begin(), all.end(),
            [](const auto* one, const auto* next) { return one->accepted < next->accepted; });
  EXPECT_THAT(all[0]->lasted(), about(500ms));
  EXPECT_THAT(all[1]->lasted(), about(1000ms));
  EXPECT_THAT(all[2]->lasted(), about(1000ms));
  EXPECT_EQ(heard_.connected, 0);
  EXPECT_GE(heard_.failed, 3);
  const std::string mute = " accepts the connection and does not answer: is it a ZooKeeper server?";
  EXPECT_EQ(client_->tried(), server_.address() + mute + ", " + other_.address() + mute);
}

TEST_F(ZooKeeperLink, SaysWhatBecameOfATry) {
  const auto becomes = [&](const std::string& text) {
    start(server_.address(), 600ms);
    const bool said = run_until([&] { return client_->tried() == server_.address() + text; });
    EXPECT_TRUE(said) << client_->tried();
    EXPECT_EQ(client_->server(), "");
  };
  server_.manner = Manner::mute;
  becomes(" accepts the connection and does not answer: is it a ZooKeeper server?");
  close();
  server_.manner = Manner::babbles;
  becomes(" answers, but is not a ZooKeeper server");
  close();
  server_.manner = Manner::hangs_up;
  becomes(" hung up (as a server does that has all the clients of its maxClientCnxns)");
  EXPECT_TRUE(run_until([&] { return client_->turned_away(); }));
  close();
  server_.close();
  becomes(" refused the connection");
  EXPECT_FALSE(client_->turned_away());
}

TEST_F(ZooKeeperLink, AConnectionForgetsTheTriesBefore) {
  server_.manner = Manner::hangs_up;
  start(server_.address());
  EXPECT_EQ(client_->session_id(), 0);
  ASSERT_TRUE(run_until([&] { return client_->turned_away(); }));
  server_.manner = Manner::answers;
  ASSERT_TRUE(run_until([&] { return client_->connected(); }));
  EXPECT_FALSE(client_->turned_away());
  EXPECT_EQ(client_->server(), server_.address());
  EXPECT_EQ(client_->session_id(), 1);
  EXPECT_EQ(client_->session_timeout(), kSession);
  const auto& last = server_.seen.back();
  EXPECT_LE(client_->created(), last.accepted);
  EXPECT_GT(client_->created(), last.accepted - 500ms);
}

TEST_F(ZooKeeperLink, SendsWhatEachCallMeans) {
  server_.manner = Manner::silent;
  connect(server_.address(), 60s);
  using Mode = Client::Mode;
  using Change = Client::Change;
  std::vector<PendingReply> pending;
  const auto add = [&](PendingReply reply) { pending.push_back(std::move(reply)); };
  add(client_->create("/a", "x", Mode::persistent));
  add(client_->create("/a", "", Mode::ephemeral));
  add(client_->create("/a-", "y", Mode::ephemeral_sequential));
  add(client_->remove("/a"));
  add(client_->set("/a", "z"));
  add(client_->set_version("/a", "z", 3));
  add(client_->remove_version("/a", 4));
  add(client_->exists("/a"));
  add(client_->get("/a"));
  add(client_->get_and_watch("/a"));
  add(client_->exists_and_watch("/a"));
  add(client_->children("/a"));
  add(client_->children_and_watch("/a"));
  add(client_->sync("/a"));
  add(client_->prove("/a"));
  add(client_->mark_and_remove("/a", "m"));
  add(client_->mark_and_replace("/a", "m", "/h", "t", Mode::ephemeral));
  Change change;
  change.path = "/r/n";
  change.data = "d";
  change.version = 6;
  change.heir = "/r/h";
  change.text = "t";
  change.mode = Mode::ephemeral_sequential;
  for (const auto kind :
       {Change::Kind::create, Change::Kind::set, Change::Kind::remove, Change::Kind::replace}) {
    change.kind = kind;
    add(client_->change_if({"/r/check", 5}, change));
  }
  ASSERT_TRUE(run_until([&] { return server_.seen[0].requests.size() == 21; }));
  std::vector<std::string> sent;
  for (const auto& [when, what] : server_.seen[0].requests) sent.push_back(what);
  EXPECT_THAT(
      sent,
      ElementsAre("create /a=x f0", "create /a= f1", "create /a-=y f3", "delete /a v-1",
                  "set /a=z v-1", "set /a=z v3", "delete /a v4", "exists /a", "get /a",
                  "get /a watched", "exists /a watched", "children /a", "children /a watched",
                  "sync /a", "multi: check /a v-1;", "multi: set /a=m v-1; delete /a v-1;",
                  "multi: set /a=m v-1; create /h=t f1; delete /a v-1;",
                  "multi: check /r/check v5; set /r= v-1; create /r/n=d f3;",
                  "multi: check /r/check v5; set /r/n=d v6;",
                  "multi: check /r/check v5; delete /r/n v6;",
                  "multi: check /r/check v5; set /r/n=d v-1; create /r/h=t f0; delete /r/n v-1;"));
  int closing = 0;
  for (auto& one : pending) {
    asio::co_spawn(env_.executor(), one.get_until(env_.now() + 5s),
                   [&closing](const std::exception_ptr&, std::optional<Reply> found) {
                     closing += found && found->rc == ZCLOSING;
                   });
  }
  auto client = client_;
  close();
  EXPECT_TRUE(run_until([&] { return closing == static_cast<int>(pending.size()); })) << closing;
  EXPECT_EQ(client->session_id(), 0);
  EXPECT_EQ(client->session_timeout(), 0ms);
  client->forget_watch("/a");
  client->forget_children("/a");
  client->set_addresses("127.0.0.1:1");
  client->authenticate("a:b");
  client->abandon();
}

TEST_F(ZooKeeperLink, ReportsMoreEventsThanOneStepReads) {
  connect(server_.address());
  constexpr int kMany = 150;
  for (int i = 0; i < kMany; ++i) {
    const auto path = "/" + std::to_string(i);
    client_->exists_and_watch(path);
    ASSERT_TRUE(
        run_until([&] { return heard_.watches.size() == static_cast<std::size_t>(i) + 1; }));
  }
  heard_.watches.clear();
  for (int i = 0; i < kMany; ++i) {
    server_.after_answer +=
        string_of(int_of(-1) + long_of(1) + int_of(ZOK) + int_of(ZOO_CHANGED_EVENT) +
                  int_of(ZOO_CONNECTED_STATE) + string_of("/" + std::to_string(i)));
  }
  client_->exists("/");
  ASSERT_TRUE(run_until([&] { return heard_.watches.size() == kMany; })) << heard_.watches.size();
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(heard_.watches[static_cast<std::size_t>(i)].first, "/" + std::to_string(i));
    EXPECT_EQ(heard_.watches[static_cast<std::size_t>(i)].second, WatchEvent::changed);
  }
  EXPECT_EQ(heard_.disconnected, 0);
}

TEST_F(ZooKeeperLink, OnlyAnAbandonedSessionIsNotClosed) {
  connect(server_.address());
  close();
  ASSERT_TRUE(run_until([&] { return server_.seen[0].closed.has_value(); }));
  ASSERT_EQ(server_.seen[0].requests.size(), 1U);
  EXPECT_EQ(server_.seen[0].requests[0].second, "request -11");
  connect(server_.address());
  client_->abandon();
  ASSERT_TRUE(run_until([&] { return server_.seen[1].closed.has_value(); }));
  close();
  EXPECT_TRUE(server_.seen[1].requests.empty());
}

}  // namespace
}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
#include "tests/live/zookeeper/support.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <sstream>

namespace dlock::testkit {
namespace {

namespace asio = boost::asio;

asio::awaitable<zookeeper::Reply> answer(
    Env& env, zookeeper::Client& client,
    std::function<zookeeper::PendingReply(zookeeper::Client&)> send) {
  auto pending = send(client);
  co_return co_await zookeeper::reply_until(std::move(pending), env.now() + 20s);
}

/// Removes the children of `path`, with all nodes below them.
void remove_below(BareClient& client, const std::string& path) {
  for (const auto& name : client.children(path.empty() ? "/" : path)) {
    if (path.empty() && name == "zookeeper") continue;
    const auto child = path + "/" + name;
    remove_below(client, child);
    client.remove(child);
  }
}

}  // namespace

ZooKeeperServer& shared_server() {
  static ZooKeeperServer server{{.tick = 500ms}};
  if (!server.running()) server.start();
  BareClient client(server.port());
  remove_below(client, "");
  return server;
}

BareClient::BareClient(std::uint16_t port, std::chrono::milliseconds session_timeout) {
  zookeeper::Client::Options options;
  options.addresses = "127.0.0.1:" + std::to_string(port);
  options.session_timeout = session_timeout;
  client_ = zookeeper::c_library().make_client(env_, std::move(options), *this);
  if (!client_->start()) throw std::runtime_error("zookeeper_init failed");
  loop_ = std::thread([this] {
    const auto work = asio::make_work_guard(env_.context());
    env_.context().run();
  });
  if (connected_.get_future().wait_for(30s) != std::future_status::ready) {
    throw std::runtime_error("no ZooKeeper server answers on port " + std::to_string(port));
  }
}

BareClient::~BareClient() {
  std::promise<void> closed;
  asio::post(env_.executor(), [&] { client_->close([&] { closed.set_value(); }); });
  closed.get_future().wait();
  env_.context().stop();
  loop_.join();
}

void BareClient::on_connected() {
  std::call_once(once_, [this] { connected_.set_value(); });
}

zookeeper::Reply BareClient::ask(Send send) {
  return asio::co_spawn(env_.executor(), answer(env_, *client_, std::move(send)), asio::use_future)
      .get();
}

std::int64_t BareClient::session_id() {
  std::promise<std::int64_t> id;
  asio::post(env_.executor(), [&] { id.set_value(client_->session_id()); });
  return id.get_future().get();
}

std::string BareClient::create(const std::string& path, std::string_view data,
                               zookeeper::Client::Mode mode) {
  return ask([&](zookeeper::Client& client) { return client.create(path, data, mode); }).text;
}

bool BareClient::remove(const std::string& path) {
  return ask([&](zookeeper::Client& client) { return client.remove(path); }).rc == ZOK;
}

bool BareClient::set(const std::string& path, std::string_view data) {
  return ask([&](zookeeper::Client& client) { return client.set(path, data); }).rc == ZOK;
}

bool BareClient::exists(const std::string& path) {
  return ask([&](zookeeper::Client& client) { return client.exists(path); }).rc == ZOK;
}

zookeeper::NodeStat BareClient::stat(const std::string& path) {
  return ask([&](zookeeper::Client& client) { return client.exists(path); }).stat;
}

std::vector<std::string> BareClient::children(const std::string& path) {
  return ask([&](zookeeper::Client& client) { return client.children(path); }).children;
}

void BareClient::sync(const std::string& path) {
  ask([&](zookeeper::Client& client) { return client.sync(path); });
}

long watches_of_locks(const ZooKeeperServer& server) {
  std::istringstream lines(server.four_letter("wchp"));
  long count = 0;
  bool of_a_lock = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('/')) of_a_lock = !line.ends_with("/%offset");
    if (line.starts_with('\t') && of_a_lock) ++count;
  }
  return count;
}

}  // namespace dlock::testkit

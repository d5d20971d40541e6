// SPDX-License-Identifier: Apache-2.0
#include "testkit/fault_proxy.hpp"

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "testkit/await.hpp"
#include "testkit/fault_proxy_connection.hpp"
#include "testkit/ports.hpp"

namespace dlock::testkit {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Connection = detail::ProxyConnection;

std::shared_ptr<const Filter> shared(Filter filter) {
  return filter ? std::make_shared<const Filter>(std::move(filter)) : nullptr;
}

}  // namespace

class FaultProxy::Impl {
 public:
  // Runs `action` on the proxy's thread and returns when it is done.
  template <typename Action>
  auto on_thread(Action action) {
    std::packaged_task<decltype(action())()> task(std::move(action));
    auto result = task.get_future();
    asio::dispatch(io_, [&task] { task(); });
    return result.get();
  }

  Impl(std::uint16_t server_port, Filter filter) : server_port_(server_port) {
    state_->filter = shared(std::move(filter));
    listen();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~Impl() {
    on_thread([this] {
      acceptor_.close();
      each([](Connection& one) { one.reset(); });
    });
    work_.reset();
    thread_.join();
  }

  void listen() {
    const tcp::endpoint here(asio::ip::address_v4::loopback(), port_.number());
    // The port is reserved for us. A child that is being started may have a copy of a socket that
    // we have just closed, until it runs its program.
    const auto latest = within(std::chrono::seconds(5));
    error_code error;
    do {
      acceptor_.open(here.protocol());
      acceptor_.set_option(asio::socket_base::reuse_address(true));
      acceptor_.bind(here, error);
      if (error) acceptor_.close();
      if (error == asio::error::address_in_use)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (error == asio::error::address_in_use && Clock::now() < latest);
    if (error) throw boost::system::system_error(error, "bind");
    acceptor_.listen();
    accept();
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket client) {
      if (error) return;  // closed by refuse() or the destructor
      const ConnectionId id = ++state_->stats.connections;
      auto connection = std::make_shared<Connection>(
          id, std::move(client), state_, [this](ConnectionId gone) { connections_.erase(gone); });
      connections_.emplace(id, connection);
      connection->start(server_port_);
      accept();
    });
  }

  template <typename Action>
  void each(Action action) {
    const auto snapshot = connections_;  // an action may end its connection
    for (const auto& [id, connection] : snapshot) action(*connection);
  }

  detail::Faults& faults(Direction direction) {
    return state_->faults[detail::index_of(direction)];
  }

  std::atomic<std::uint16_t> server_port_;
  Port port_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  tcp::acceptor acceptor_{io_};
  std::shared_ptr<detail::ProxyState> state_ = std::make_shared<detail::ProxyState>();
  std::map<ConnectionId, std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

FaultProxy::FaultProxy(std::uint16_t server_port, Filter filter)
    : impl_(std::make_unique<Impl>(server_port, std::move(filter))) {}

FaultProxy::~FaultProxy() = default;

std::uint16_t FaultProxy::port() const { return impl_->port_.number(); }

std::uint16_t FaultProxy::server_port() const { return impl_->server_port_; }

void FaultProxy::lead_to(std::uint16_t server_port) { impl_->server_port_ = server_port; }

ProxyStats FaultProxy::stats() const {
  return impl_->on_thread([this] {
    ProxyStats stats = impl_->state_->stats;
    stats.open = impl_->connections_.size();
    return stats;
  });
}

std::vector<ConnectionId> FaultProxy::connections() const {
  return impl_->on_thread([this] {
    std::vector<ConnectionId> ids;
    for (const auto& [id, connection] : impl_->connections_) ids.push_back(id);
    return ids;
  });
}

void FaultProxy::set_filter(Filter filter) {
  impl_->on_thread([&] { impl_->state_->filter = shared(std::move(filter)); });
}

void FaultProxy::on_data(DataHook hook) {
  set_filter(
      [hook = std::move(hook)](Direction direction, ConnectionId id, std::string_view bytes) {
        const Verdict verdict = hook(direction, id, bytes);
        return std::vector<Piece>{{std::string(bytes), verdict}};
      });
}

void FaultProxy::drop_all() {
  impl_->on_thread([this] { impl_->each([](Connection& one) { one.reset(); }); });
}

void FaultProxy::drop(ConnectionId connection) {
  impl_->on_thread([&] {
    const auto found = impl_->connections_.find(connection);
    if (found == impl_->connections_.end()) return;
    const auto alive = found->second;
    alive->reset();
  });
}

void FaultProxy::drop_clients() {
  impl_->on_thread([this] { impl_->each([](Connection& one) { one.reset_client(); }); });
}

void FaultProxy::refuse(bool on) {
  impl_->on_thread([&] {
    if (on && impl_->acceptor_.is_open()) impl_->acceptor_.close();
    if (!on && !impl_->acceptor_.is_open()) impl_->listen();
  });
}

void FaultProxy::hold(Direction direction, bool on) {
  impl_->on_thread([&] {
    impl_->faults(direction).hold = on;
    impl_->each([&](Connection& one) { one.pump(direction); });
  });
}

void FaultProxy::hold(ConnectionId connection, Direction direction, bool on) {
  impl_->on_thread([&] {
    const auto found = impl_->connections_.find(connection);
    if (found == impl_->connections_.end()) return;
    const auto alive = found->second;
    alive->hold(direction, on);
  });
}

void FaultProxy::release_held() {
  impl_->on_thread([this] { impl_->each([](Connection& one) { one.release_held(); }); });
}

void FaultProxy::swallow(Direction direction, bool on) {
  impl_->on_thread([&] { impl_->faults(direction).swallow = on; });
}

void FaultProxy::duplicate(Direction direction, bool on) {
  impl_->on_thread([&] { impl_->faults(direction).duplicate = on; });
}

void FaultProxy::delay(Direction direction, std::chrono::milliseconds by) {
  impl_->on_thread([&] { impl_->faults(direction).delay = by; });
}

void FaultProxy::reset_after(Direction direction, std::size_t bytes) {
  impl_->on_thread([&] { impl_->faults(direction).reset_after = bytes; });
}

}  // namespace dlock::testkit

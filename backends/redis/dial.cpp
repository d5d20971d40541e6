// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/dial.hpp"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/tls.hpp"

namespace dlock::redis {
namespace {

using asio::ip::tcp;
using Endpoints = tcp::resolver::results_type;

Opened failed(Error error, std::string text, bool permanent = false) {
  Opened opened;
  opened.failure = {error, std::move(text)};
  opened.permanent = permanent;
  return opened;
}

Opened unreachable(const DialSettings& settings, std::string_view why) {
  return failed(Error::not_connected, fmt::format("{}: {}", settings.address(), why));
}

struct Resolved {
  error_code ec;
  Endpoints endpoints;
};

error_code aborted() { return asio::error::operation_aborted; }

asio::awaitable<std::optional<Resolved>> resolve(core::Env& env, std::string host,
                                                 std::uint16_t port, std::shared_ptr<DialStop> stop,
                                                 TimePoint deadline) {
  auto resolver = std::make_shared<tcp::resolver>(env.executor());
  core::OneShot<Resolved> done(env);
  resolver->async_resolve(host, std::to_string(port),
                          [resolver, done](error_code ec, Endpoints endpoints) {
                            done.set({ec, std::move(endpoints)});
                          });
  stop->step([done] { done.set({aborted(), {}}); });
  auto resolved = co_await done.get_until(deadline);
  stop->step_over();
  // Harmless when it is done.
  resolver->cancel();
  co_return resolved;
}

template <class Socket>
void tune(Socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
}

/// Connects `stream` to the first endpoint that answers. The error is clear on success, empty when
/// the deadline came first.
template <class Socket>
asio::awaitable<std::optional<error_code>> connect_tcp(core::Env& env,
                                                       std::shared_ptr<SocketStream<Socket>> stream,
                                                       Endpoints endpoints,
                                                       std::shared_ptr<DialStop> stop,
                                                       TimePoint deadline) {
  core::OneShot<error_code> done(env);
  asio::async_connect(stream->socket().lowest_layer(), endpoints,
                      [stream, done](error_code ec, const tcp::endpoint&) { done.set(ec); });
  stop->step([done] { done.set(aborted()); });
  auto ec = co_await done.get_until(deadline);
  stop->step_over();
  if (ec && !*ec) {
    tune(stream->socket().lowest_layer());
    stream->opened();
  } else {
    stream->close();
  }
  co_return ec;
}

Opened success(std::shared_ptr<Stream> stream) {
  Opened opened;
  opened.stream = std::move(stream);
  return opened;
}

asio::awaitable<Opened> open_unix(core::Env& env, std::shared_ptr<const DialSettings> settings,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  auto stream = std::make_shared<SocketStream<UnixSocket>>(env.executor());
  core::OneShot<error_code> done(env);
  const asio::local::stream_protocol::endpoint endpoint(settings->socket_path);
  stream->socket().async_connect(endpoint, [stream, done](error_code ec) { done.set(ec); });
  stop->step([done] { done.set(aborted()); });
  const auto ec = co_await done.get_until(deadline);
  stop->step_over();
  if (!ec || *ec) {
    stream->close();
    co_return unreachable(*settings, ec ? ec->message() : "no answer in time");
  }
  stream->opened();
  co_return success(std::move(stream));
}

asio::awaitable<TlsContext> tls_context(core::Env& env,
                                        std::shared_ptr<const DialSettings> settings,
                                        std::shared_ptr<DialStop> stop) {
  auto made = std::make_shared<TlsContext>();
  core::OneShot<bool> done(env);
  env.run_blocking([made, settings] { *made = make_tls_context(*settings); },
                   [done] { done.set(true); });
  stop->step([done] { done.set(false); });
  const auto finished = co_await done.get_until(kNever);
  stop->step_over();
  if (finished.value_or(false)) co_return *made;
  // Somebody may still be writing to `made`.
  TlsContext none;
  none.error = aborted().message();
  co_return none;
}

asio::awaitable<Opened> start_tls(core::Env& env, std::shared_ptr<SocketStream<TlsSocket>> stream,
                                  std::shared_ptr<const DialSettings> settings,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  core::OneShot<error_code> done(env);
  const auto prepared = expect_server(stream->socket(), *settings);
  if (prepared) co_return failed(Error::tls_failed, prepared.message(), true);
  stream->socket().async_handshake(asio::ssl::stream_base::client,
                                   [stream, done](error_code ec) { done.set(ec); });
  stop->step([done] { done.set(aborted()); });
  const auto ec = co_await done.get_until(deadline);
  stop->step_over();
  if (ec && !*ec) co_return success(std::move(stream));
  if (!ec) {
    stream->close();
    co_return failed(Error::tls_failed, settings->address() +
                                            ": no answer to the TLS handshake in time; does the "
                                            "port speak TLS?");
  }
  auto text = fmt::format("{}: {}", settings->address(), handshake_error(stream->socket(), *ec));
  // A connection that ends in the middle may be a server that is just ending.
  const bool ours = ec->category() == asio::error::get_ssl_category();
  stream->close();
  co_return failed(Error::tls_failed, std::move(text), ours);
}

asio::awaitable<Opened> open_tcp(core::Env& env, std::shared_ptr<const DialSettings> settings,
                                 std::shared_ptr<DialStop> stop, TimePoint deadline) {
  auto resolved = co_await resolve(env, settings->host, settings->port, stop, deadline);
  if (!resolved) co_return failed(Error::unknown_host, settings->host + ": no answer in time");
  if (resolved->ec) {
    co_return failed(Error::unknown_host, settings->host + ": " + resolved->ec.message());
  }
  if (!settings->tls) {
    auto stream = std::make_shared<SocketStream<TcpSocket>>(env.executor());
    const auto ec =
        co_await connect_tcp(env, stream, std::move(resolved->endpoints), stop, deadline);
    if (ec && !*ec) co_return success(std::move(stream));
    co_return unreachable(*settings, ec ? ec->message() : "no answer in time");
  }
  const auto made = co_await tls_context(env, settings, stop);
  if (!made.context) co_return failed(Error::configuration, made.error, true);
  // The stream keeps what it needs of the context (OpenSSL counts its users).
  auto stream = std::make_shared<SocketStream<TlsSocket>>(env.executor(), *made.context);
  const auto ec = co_await connect_tcp(env, stream, std::move(resolved->endpoints), stop, deadline);
  if (!ec || *ec) co_return unreachable(*settings, ec ? ec->message() : "no answer in time");
  co_return co_await start_tls(env, std::move(stream), std::move(settings), stop, deadline);
}

Command auth_command(const DialSettings& settings) {
  Command command;
  command.emplace_back("AUTH");
  if (!settings.username.empty()) command.push_back(settings.username);
  command.push_back(settings.password);
  return command;
}

/// The first step that was refused.
asio::awaitable<Dialled> log_in(std::shared_ptr<Connection> connection,
                                std::shared_ptr<const DialSettings> settings, bool database,
                                TimePoint deadline) {
  std::vector<Pending> steps;
  const bool authenticates = !settings->password.empty();
  if (authenticates) steps.push_back(connection->send(auth_command(*settings)));
  if (database && settings->database != 0) {
    Command select;
    select.emplace_back("SELECT");
    select.push_back(std::to_string(settings->database));
    steps.push_back(connection->send(select));
  }
  Dialled dialled;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto outcome = co_await steps[i].get_until(deadline);
    if (!outcome || outcome->kind != Outcome::Kind::reply) {
      dialled.failure = connection->is_open() ? Failure{Error::no_answer, settings->address()}
                                              : connection->failure();
      dialled.permanent = dialled.failure.error == Error::tls_failed;
      connection->close(dialled.failure);
      co_return dialled;
    }
    if (!outcome->reply.is_error()) continue;
    auto verdict = judge(outcome->reply.text);
    // Whatever else a server says to AUTH (no password set, no ACL before 6), it is about that.
    if (i == 0 && authenticates && verdict.error == Error::unexpected) {
      verdict.error = Error::authentication_failed;
    }
    dialled.failure = {verdict.error, outcome->reply.text};
    dialled.permanent = is_permanent(verdict);
    connection->close(dialled.failure);
    co_return dialled;
  }
  dialled.connection = std::move(connection);
  co_return dialled;
}

}  // namespace

std::string DialSettings::address() const {
  if (!socket_path.empty()) return socket_path;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

asio::awaitable<Dialled> dial(core::Env& env, std::shared_ptr<const DialSettings> settings,
                              bool database, std::shared_ptr<DialStop> stop, TimePoint deadline) {
  Opened opened;
  if (settings->open_stream) {
    opened = co_await settings->open_stream(env, settings, stop, deadline);
  } else if (settings->socket_path.empty()) {
    opened = co_await open_tcp(env, settings, stop, deadline);
  } else {
    opened = co_await open_unix(env, settings, stop, deadline);
  }
  if (!opened.stream) {
    Dialled dialled;
    dialled.failure = std::move(opened.failure);
    dialled.permanent = opened.permanent;
    co_return dialled;
  }
  auto connection = std::make_shared<Connection>(env, std::move(opened.stream));
  connection->start();
  stop->step([weak = std::weak_ptr<Connection>(connection)] {
    if (const auto ours = weak.lock()) ours->close({Error::closed, ""});
  });
  co_return co_await log_in(std::move(connection), std::move(settings), database, deadline);
}

}  // namespace dlock::redis

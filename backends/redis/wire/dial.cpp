// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/dial.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/wire/tls.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::redis {
namespace {

using asio::ip::tcp;

Opened failed(Error error, std::string text, bool permanent = false) {
  Opened opened;
  opened.failure = {error, std::move(text)};
  opened.permanent = permanent;
  return opened;
}

Opened unreachable(const DialSettings& settings, std::string_view why) {
  return failed(Error::not_connected, fmt::format("{}: {}", settings.address(), why));
}

/// What a helper thread finds out. It may do so when nobody waits any more.
struct Lookup {
  std::atomic<bool> begun = false;
  std::vector<tcp::endpoint> endpoints;
  std::string error;
};

void look_up(const std::string& host, std::uint16_t port, Lookup& found) {
  found.begun = true;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &all);
  if (failed != 0) {
    found.error = failed == EAI_SYSTEM ? with_limit(errno) : ::gai_strerror(failed);
    return;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(all, &::freeaddrinfo);
  for (const auto* one = all; one != nullptr; one = one->ai_next) {
    tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
    endpoint.resize(one->ai_addrlen);
    endpoint.port(port);
    found.endpoints.push_back(endpoint);
  }
}

struct Resolved {
  std::vector<tcp::endpoint> endpoints;
  std::string error;
};

constexpr const char* kNoThread =
    "no thread can be made that could ask, see RLIMIT_NPROC and pids.max";

// Not Asio's resolver: it keeps a thread of its own, which takes the application's signals, and
// says by an exception that there is none to be had.
asio::awaitable<Resolved> resolve(Env& env, std::string host, std::uint16_t port,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  Resolved resolved;
  error_code is_a_name;
  const auto address = asio::ip::make_address(host, is_a_name);
  if (!is_a_name) {
    resolved.endpoints.emplace_back(address, port);
    co_return resolved;
  }
  const auto found = std::make_shared<Lookup>();
  OneShot<bool> done(env);
  Job job = [found, host, port] {
    try {
      look_up(host, port, *found);
    } catch (const std::exception& error) {
      found->error = error.what();
    }
  };
  Job told = [done] { done.set(true); };
  env.run_blocking(std::move(job), std::move(told));
  stop->step([done] { done.set(false); });
  const auto finished = co_await done.get_until(deadline);
  stop->step_over();
  if (!finished.value_or(false)) {
    resolved.error = found->begun ? "no answer in time" : kNoThread;
    co_return resolved;
  }
  resolved.endpoints = std::move(found->endpoints);
  resolved.error = std::move(found->error);
  co_return resolved;
}

template <class Socket>
void tune(Socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
}

/// Clear on success.
struct Connected {
  error_code ec;
  std::string error;
};

template <class Socket, class Endpoint>
asio::awaitable<Connected> connect_to(Env& env, std::shared_ptr<SocketStream<Socket>> stream,
                                      Endpoint endpoint, std::shared_ptr<DialStop> stop,
                                      TimePoint deadline) {
  Connected connected;
  connected.ec = stream->open(endpoint.protocol());
  if (connected.ec) {
    connected.error = with_limit(connected.ec.value());
    co_return connected;
  }
  OneShot<error_code> done(env);
  stream->socket().lowest_layer().async_connect(endpoint,
                                                [stream, done](error_code ec) { done.set(ec); });
  stop->step([stream] { stream->close(); });
  const auto ec = co_await done.get_until(deadline);
  stop->step_over();
  connected.ec = ec.value_or(asio::error::timed_out);
  if (!connected.ec) co_return connected;
  connected.error = ec ? ec->message() : "no answer in time";
  stream->close();
  co_return connected;
}

/// To the first endpoint that answers.
template <class Socket>
asio::awaitable<Connected> connect_tcp(Env& env, std::shared_ptr<SocketStream<Socket>> stream,
                                       std::vector<tcp::endpoint> endpoints,
                                       std::shared_ptr<DialStop> stop, TimePoint deadline) {
  Connected connected;
  connected.ec = asio::error::host_not_found;
  connected.error = "the name has no address";
  for (const auto& endpoint : endpoints) {
    connected = co_await connect_to(env, stream, endpoint, stop, deadline);
    if (!connected.ec) tune(stream->socket().lowest_layer());
    if (!connected.ec || stop->stopped() || env.now() >= deadline) break;
  }
  co_return connected;
}

Opened success(std::shared_ptr<Stream> stream) {
  Opened opened;
  opened.stream = std::move(stream);
  return opened;
}

asio::awaitable<Opened> open_unix(Env& env, std::shared_ptr<const DialSettings> settings,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  auto stream = std::make_shared<SocketStream<UnixSocket>>(env.executor());
  const asio::local::stream_protocol::endpoint endpoint(settings->socket_path);
  const auto connected = co_await connect_to(env, stream, endpoint, stop, deadline);
  if (connected.ec) co_return unreachable(*settings, connected.error);
  co_return success(std::move(stream));
}

/// What a helper thread makes.
struct Reading {
  std::atomic<bool> begun = false;
  TlsContext made;
};

asio::awaitable<TlsContext> tls_context(Env& env, std::shared_ptr<const DialSettings> settings,
                                        std::shared_ptr<DialStop> stop, TimePoint deadline) {
  const auto reading = std::make_shared<Reading>();
  OneShot<bool> done(env);
  Job job = [reading, settings] {
    reading->begun = true;
    try {
      reading->made = make_tls_context(*settings);
    } catch (const std::exception& error) {
      reading->made = {nullptr, error.what(), false};
    }
  };
  Job told = [done] { done.set(true); };
  env.run_blocking(std::move(job), std::move(told));
  stop->step([done] { done.set(false); });
  const auto finished = co_await done.get_until(deadline);
  stop->step_over();
  if (finished.value_or(false)) co_return std::move(reading->made);
  // Somebody may still be writing there.
  TlsContext none;
  none.error = reading->begun ? "the certificates could not be read in time" : kNoThread;
  co_return none;
}

asio::awaitable<Opened> start_tls(Env& env, std::shared_ptr<SocketStream<TlsSocket>> stream,
                                  std::shared_ptr<const DialSettings> settings,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  OneShot<error_code> done(env);
  const auto prepared = expect_server(stream->socket(), *settings);
  if (prepared) co_return failed(Error::tls_failed, prepared.message(), true);
  stream->socket().async_handshake(asio::ssl::stream_base::client,
                                   [stream, done](error_code ec) { done.set(ec); });
  stop->step([stream] { stream->close(); });
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

asio::awaitable<Opened> open_tcp(Env& env, std::shared_ptr<const DialSettings> settings,
                                 std::shared_ptr<DialStop> stop, TimePoint deadline) {
  auto resolved = co_await resolve(env, settings->host, settings->port, stop, deadline);
  if (!resolved.error.empty()) {
    co_return failed(Error::unknown_host, settings->host + ": " + resolved.error);
  }
  if (!settings->tls) {
    auto stream = std::make_shared<SocketStream<TcpSocket>>(env.executor());
    const auto connected =
        co_await connect_tcp(env, stream, std::move(resolved.endpoints), stop, deadline);
    if (connected.ec) co_return unreachable(*settings, connected.error);
    co_return success(std::move(stream));
  }
  const auto made = co_await tls_context(env, settings, stop, deadline);
  if (!made.context) {
    const auto error = made.permanent ? Error::configuration : Error::no_resources;
    co_return failed(error, made.error, made.permanent);
  }
  // The stream keeps what it needs of the context (OpenSSL counts its users).
  auto stream = std::make_shared<SocketStream<TlsSocket>>(env.executor(), *made.context);
  const auto connected =
      co_await connect_tcp(env, stream, std::move(resolved.endpoints), stop, deadline);
  if (connected.ec) co_return unreachable(*settings, connected.error);
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
    dialled.refused = true;
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

asio::awaitable<Dialled> dial(Env& env, std::shared_ptr<const DialSettings> settings, bool database,
                              std::shared_ptr<DialStop> stop, TimePoint deadline) {
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

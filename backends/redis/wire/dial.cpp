// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/dial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "backends/redis/error.hpp"
#include "backends/redis/wire/tls.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/net/tcp_dial.hpp"

namespace dlock::redis {
namespace {

Opened failed(Error error, std::string text, bool permanent = false) {
  Opened opened;
  opened.failure = {error, std::move(text)};
  opened.permanent = permanent;
  return opened;
}

Opened unreachable(const DialSettings& settings, std::string_view why) {
  return failed(Error::not_connected, fmt::format("{}: {}", settings.address(), why));
}

constexpr const char* kNoThread =
    "no thread can be made that could read, see RLIMIT_NPROC and pids.max";

Opened success(std::shared_ptr<Stream> stream) {
  Opened opened;
  opened.stream = std::move(stream);
  return opened;
}

asio::awaitable<Opened> open_unix(Env& env, std::shared_ptr<const DialSettings> settings,
                                  std::shared_ptr<DialStop> stop, TimePoint deadline) {
  const auto stream = std::make_shared<SocketStream<UnixSocket>>(env.executor());
  const asio::local::stream_protocol::endpoint endpoint(settings->socket_path);
  if (const auto ec = stream->open(endpoint.protocol())) {
    co_return unreachable(*settings, system_text(ec.value()));
  }
  OneShot<error_code> done(env);
  stream->socket().async_connect(endpoint, [stream, done](error_code ec) { done.set(ec); });
  stop->step([stream] { stream->close(); });
  const auto ec = co_await done.get_until(deadline);
  stop->step_over();
  if (ec && !*ec) co_return success(stream);
  stream->close();
  co_return unreachable(*settings, ec ? ec->message() : "no answer in time");
}

/// The result of a helper thread.
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
      end_if_out_of_memory(error);
      reading->made = {nullptr, error.what(), false};
    }
  };
  Job told = [done] { done.set(true); };
  env.run_unbounded(std::move(job), std::move(told));
  stop->step([done] { done.set(false); });
  const auto finished = co_await done.get_until(deadline);
  stop->step_over();
  if (finished.value_or(false)) co_return std::move(reading->made);
  // The helper thread may still be writing there.
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
    co_return failed(Error::no_answer, settings->address() +
                                           ": no answer to the TLS handshake; does the port speak "
                                           "TLS?");
  }
  auto text = fmt::format("{}: {}", settings->address(), handshake_error(stream->socket(), *ec));
  // A connection that ends in the middle may be a server that is just ending.
  const bool ours = ec->category() == asio::error::get_ssl_category();
  stream->close();
  // Whether such a server answers the handshake is chance; silence is `unavailable` too.
  const auto error = is_not_tls(*ec) ? Error::not_connected : Error::tls_failed;
  co_return failed(error, std::move(text), ours);
}

/// Connects the stream. Returns the failure, if it has one.
template <class Socket>
asio::awaitable<Opened> connect_tcp(Env& env, std::shared_ptr<SocketStream<Socket>> stream,
                                    std::shared_ptr<const DialSettings> settings,
                                    std::shared_ptr<DialStop> stop, TimePoint deadline) {
  const auto dial = std::make_shared<TcpDial>(env);
  const Endpoint server{settings->host, settings->port};
  stop->step([dial] { dial->stop(); });
  auto reached = co_await dial->run(server, deadline);
  stop->step_over();
  if (reached.socket) {
    stream->adopt(std::move(*reached.socket));
    co_return success(std::move(stream));
  }
  if (reached.failed == TcpDial::Step::connecting) co_return unreachable(*settings, reached.error);
  co_return failed(Error::unknown_host, settings->host + ": " + reached.error);
}

asio::awaitable<Opened> open_tcp(Env& env, std::shared_ptr<const DialSettings> settings,
                                 std::shared_ptr<DialStop> stop, TimePoint deadline) {
  if (!settings->tls) {
    auto stream = std::make_shared<SocketStream<TcpSocket>>(env.executor());
    co_return co_await connect_tcp(env, std::move(stream), settings, stop, deadline);
  }
  const auto made = co_await tls_context(env, settings, stop, deadline);
  if (!made.context) {
    const auto error = made.permanent ? Error::configuration : Error::no_resources;
    co_return failed(error, made.error, made.permanent);
  }
  // The stream keeps what it needs of the context (OpenSSL counts its users).
  const auto stream = std::make_shared<SocketStream<TlsSocket>>(env.executor(), *made.context);
  auto connected = co_await connect_tcp(env, stream, settings, stop, deadline);
  if (!connected.stream) co_return connected;
  co_return co_await start_tls(env, stream, std::move(settings), stop, deadline);
}

/// Reads the password file, if there is one. A file that takes longer than a second, or cannot be
/// read, leaves the password as it was.
asio::awaitable<void> read_password(Env& env, std::shared_ptr<Password> password,
                                    std::shared_ptr<DialStop> stop, TimePoint deadline) {
  if (!password || !password->has_file()) co_return;
  OneShot<bool> done(env);
  Job told = [done] { done.set(true); };
  password->read_again(env, std::move(told));
  stop->step([done] { done.set(false); });
  co_await done.get_until(std::min<TimePoint>(deadline, env.now() + std::chrono::seconds(1)));
  stop->step_over();
}

Command auth_command(const DialSettings& settings) {
  Command command;
  command.emplace_back("AUTH");
  if (!settings.username.empty()) command.push_back(settings.username);
  command.push_back(settings.password->value());
  return command;
}

/// The first step that was refused.
asio::awaitable<Dialled> log_in(std::shared_ptr<Connection> connection,
                                std::shared_ptr<const DialSettings> settings, bool database,
                                TimePoint deadline) {
  std::vector<Pending> steps;
  const bool authenticates = settings->password != nullptr;
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
    if (i == 0 && authenticates && settings->password->has_file()) {
      const auto& trouble = settings->password->trouble();
      dialled.failure.text += trouble.empty()
                                  ? fmt::format(" (password of {})", settings->password->file())
                                  : fmt::format(" ({})", trouble);
    }
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
  co_await read_password(env, settings->password, stop, deadline);
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

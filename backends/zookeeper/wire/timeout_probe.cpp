// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/timeout_probe.hpp"

namespace dlock::zookeeper {
namespace {

class TimeoutProbe final : public Client::Listener {
 public:
  explicit TimeoutProbe(Env& env) : connected(env) {}
  void on_connected() override { connected.set(true); }
  void on_disconnected() override { connected.set(false); }
  void on_attempt_failed() override { connected.set(false); }
  void on_session_over(bool) override { connected.set(false); }
  void on_watch(const std::string&, WatchEvent) override {}
  void on_answer(TimePoint, TimePoint, bool) override {}

  OneShot<bool> connected;
};

}  // namespace

asio::awaitable<std::optional<AskedTimeout>> feel_timeout(Library& library, Env& env,
                                                          std::string server,
                                                          std::chrono::milliseconds timeout,
                                                          Redial::Spent spent, TimePoint deadline) {
  TimeoutProbe probe(env);
  Client::Options options;
  options.addresses = std::move(server);
  options.session_timeout = timeout;
  options.tries_spent = std::move(spent);
  const auto client = library.make_client(env, std::move(options), probe);
  std::optional<AskedTimeout> felt;
  if (!client->start()) co_return felt;
  const auto connected = co_await probe.connected.get_until(deadline);
  if (connected && *connected) felt = AskedTimeout{timeout, client->session_timeout()};
  OneShot<bool> closed(env);
  client->close([closed] { closed.set(true); });
  co_await closed.get_until(deadline + std::chrono::seconds(1));
  co_return felt;
}

}  // namespace dlock::zookeeper

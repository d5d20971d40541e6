// SPDX-License-Identifier: Apache-2.0
//
// One server, for all procedures at once. It connects when a command needs it, and inspects the
// server on every new connection (a restart ends all connections). It keeps the canary: a key whose
// loss or change shows that the server lost everything (flush_all, or a restart behind a proxy).
// All clients share one canary per server and key template; its value is random.
#pragma once

#include <functional>
#include <string>

#include "backends/memcached/rules/pacer.hpp"
#include "backends/memcached/wire/client.hpp"
#include "backends/memcached/wire/self_test.hpp"
#include "backends/memcached/wire/turns.hpp"
#include "dlock/spi/self_test/gate.hpp"

namespace dlock::memcached {

/// Loop only. Commands are those of commands.hpp, each with its deadline.
class Session final {
 public:
  struct Settings {
    Endpoint server;
    std::uint32_t flags = 0;
    std::string canary_key;
    std::string list_key;
    std::string list_note;  ///< as server_list.hpp writes it
    std::time_t list_exptime = 0;
    std::function<std::string(std::string_view id)> self_test_key;
    MakeClient make_client = text_driver();
  };
  /// Called from within a procedure whenever the server has reported its facts.
  using OnFacts = std::function<void(const ServerInfo&)>;

  Session(Env& env, Settings settings, OnFacts on_info);

  /// Connects, inspects the server, and checks that it is fit for locks. If the time is too short
  /// for the next step of a slow connection: `connecting`, and the next call continues there.
  asio::awaitable<Answer> ready(TimePoint deadline);
  /// Closes permanently.
  void close();

  TimePoint now() const { return env_.now(); }
  std::int64_t wall_clock_us() const;
  asio::awaitable<Answer> add(const std::string& key, const std::string& value, std::time_t exptime,
                              TimePoint deadline);
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              const ItemNumber& number, TimePoint deadline);
  asio::awaitable<std::vector<Answer>> cas_all(const std::vector<Replacement>& all,
                                               TimePoint deadline);
  asio::awaitable<Answer> remove(const std::string& key, const ItemNumber& number,
                                 TimePoint deadline);
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by, TimePoint deadline);
  asio::awaitable<Number> seconds_left(const std::string& key, TimePoint deadline);
  asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint deadline);
  asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys, TimePoint deadline);
  bool may_grant() const { return is_ready() && gate_.is_open(); }
  asio::awaitable<Answer> pass_self_test(TimePoint deadline);
  /// Returns the answers of a new run. For `dlock doctor`.
  asio::awaitable<SelfTestReport> self_test(TimePoint deadline);
  asio::awaitable<Answer> refresh_facts(TimePoint deadline);
  const ServerInfo& info() const { return info_; }

 private:
  /// The steps of a new connection, one or two round trips each.
  enum class Step { open, canary, stats, settings, list, done };

  bool is_ready() const;
  bool is_of_now(const ItemNumber& number) const;
  void lost_all();
  TimePoint step_deadline(TimePoint deadline) const;
  template <class Command>
  asio::awaitable<Answer> when_ready(Command command, TimePoint deadline);
  asio::awaitable<Number> increment_when_ready(const std::string& key, std::uint64_t by,
                                               TimePoint deadline);
  asio::awaitable<Answer> connect(TimePoint deadline);
  asio::awaitable<Answer> take_step(TimePoint deadline);
  asio::awaitable<Answer> ask_stats(TimePoint deadline);
  asio::awaitable<Answer> check_canary(TimePoint deadline);
  asio::awaitable<Answer> check_list(TimePoint deadline);
  SelfTestRun self_test_run(TimePoint deadline);

  Env& env_;
  const Settings settings_;
  const OnFacts on_facts_;
  std::unique_ptr<Client> client_;
  ServerInfo info_;
  std::string canary_;
  SelfTestGate gate_;
  Turns connecting_;  ///< one makes the connection, the others wait for it
  Step next_ = Step::open;
  bool is_closed_ = false;
  ServerInfo seen_;          ///< facts from the connection that is being made
  Duration slowest_step_{};  ///< slowest step of that connection
  Pacer pacer_;
  Failure last_failure_;  ///< why the last connection failed
  TimePoint list_due_{};
  mutable std::int64_t wall_ms_ = 0;  ///< as last read
  mutable TimePoint wall_ms_seen_{};  ///< time of the first read of that value
};

}  // namespace dlock::memcached

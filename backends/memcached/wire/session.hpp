// SPDX-License-Identifier: Apache-2.0
//
// One server as the procedures see it: connects when a command needs it,
// looks at the server on every new connection (a restart breaks them all), and keeps the canary: a
// key whose loss or change says that the server lost everything (flush_all, or a restart behind a
// proxy). All clients share one canary per server and key template; its value is random.
#pragma once

#include <functional>
#include <string>

#include "backends/memcached/rules/pacer.hpp"
#include "backends/memcached/wire/client.hpp"

namespace dlock::memcached {

class Session final : public Commands {
 public:
  struct Settings {
    Endpoint server;
    std::uint32_t flags = 0;
    std::string canary_key;
    std::string list_key;
    std::string list_note;  ///< as server_list.hpp writes it
    std::time_t list_exptime = 0;
    MakeClient make_client = text_driver();
  };
  /// Called whenever the server was asked, from within a procedure.
  using OnFacts = std::function<void(const ServerInfo&)>;

  Session(Env& env, Settings settings, OnFacts on_info);

  /// For the commands from now on.
  void until(TimePoint deadline) {
    deadline_ = deadline;
    client_->until(deadline);
  }
  /// Connected, inspected, and fit for locks. Where the time does not suffice for the next step of
  /// a slow connection: `connecting`, and the next call goes on there.
  asio::awaitable<Answer> ready();
  /// The next command is sent on a connection of its own.
  void drop() noexcept { client_->drop(); }
  /// For good.
  void close() noexcept;
  /// Some command was not done, or not answered, because of close().
  bool has_told_closed() const noexcept { return told_closed_ || client_->has_told_closed(); }

  TimePoint now() const override { return env_.now(); }
  std::int64_t wall_clock_us() const override;
  TimePoint deadline() const override { return deadline_; }
  asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                              std::time_t exptime) override;
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas) override;
  asio::awaitable<Answer> remove(const std::string& key, const ItemNumber& number) override;
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) override;
  asio::awaitable<Found> gets(const std::vector<std::string>& keys) override;
  asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys) override;
  asio::awaitable<Answer> refresh_facts() override;
  const ServerInfo& info() const override { return info_; }

 private:
  /// What is asked on a new connection, one round trip each, or two.
  enum class Step { canary, stats, settings, list, done };

  Client& step();
  bool is_ready() const;
  void lost_all();
  template <class Command>
  asio::awaitable<Answer> when_ready(Command command);
  asio::awaitable<Number> increment_when_ready(const std::string& key, std::uint64_t by);
  asio::awaitable<Answer> connect();
  asio::awaitable<Answer> take_step();
  asio::awaitable<Answer> ask_stats();
  asio::awaitable<Answer> check_canary();
  asio::awaitable<Answer> check_list();

  Env& env_;
  const Settings settings_;
  const OnFacts on_facts_;
  std::unique_ptr<Client> client_;
  ServerInfo info_;
  std::string canary_;
  TimePoint deadline_{};
  Step next_ = Step::canary;
  bool is_closed_ = false;
  bool told_closed_ = false;
  ServerInfo seen_;          ///< of the connection that is being made
  Duration slowest_step_{};  ///< of it
  Pacer pacer_;
  Failure last_failure_;  ///< why the last connection came to nothing
  TimePoint list_due_{};
  mutable std::int64_t wall_ms_ = 0;  ///< as last read
  mutable TimePoint wall_ms_seen_{};  ///< when it had just become that
};

}  // namespace dlock::memcached

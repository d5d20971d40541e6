// SPDX-License-Identifier: Apache-2.0
//
// One server as the procedures see it, on the worker's thread: connects when a command needs it,
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
    Driver driver = library_driver();
  };
  /// Called on the worker's thread whenever the server was asked.
  using OnFacts = std::function<void(const ServerInfo&)>;

  Session(Env& env, Settings settings, OnFacts on_info);

  /// For the commands from now on.
  void until(TimePoint deadline) {
    deadline_ = deadline;
    client_->until(deadline);
  }
  /// Connected, inspected, and fit for locks. Where the time does not suffice for the next step of
  /// a slow connection: `connecting`, and the next call goes on there.
  Answer ready();
  /// The next command is sent on a connection of its own.
  void drop() noexcept { client_->drop(); }

  TimePoint now() const override { return env_.now(); }
  std::int64_t wall_clock_us() const override;
  TimePoint deadline() const override { return deadline_; }
  Answer add(const std::string& key, const std::string& value, std::time_t exptime) override;
  Answer cas(const std::string& key, const std::string& value, std::time_t exptime,
             std::uint64_t cas) override;
  Number increment(const std::string& key, std::uint64_t by) override;
  Found gets(const std::vector<std::string>& keys) override;
  Found gets_and_canary(std::vector<std::string> keys) override;
  Answer refresh_facts() override;
  const ServerInfo& info() const override { return info_; }

 private:
  /// What is asked on a new connection, one round trip each, or two.
  enum class Step { canary, stats, settings, list, done };

  Client& step();
  Answer connect();
  Answer take_step();
  Answer ask_stats();
  Answer check_canary();
  Answer check_list();

  Env& env_;
  const Settings settings_;
  const OnFacts on_facts_;
  std::unique_ptr<Client> client_;
  ServerInfo info_;
  std::string canary_;
  TimePoint deadline_{};
  Step next_ = Step::canary;
  ServerInfo seen_;          ///< of the connection that is being made
  Duration slowest_step_{};  ///< of it
  Pacer pacer_;
  Failure last_failure_;  ///< why the last connection came to nothing
  TimePoint list_due_{};
  mutable std::int64_t wall_ms_ = 0;  ///< as last read
  mutable TimePoint wall_ms_seen_{};  ///< when it had just become that
};

}  // namespace dlock::memcached

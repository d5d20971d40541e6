// SPDX-License-Identifier: Apache-2.0
//
// SimClient: what LibraryClient and the C client behind it do, over a simulated ensemble: pings
// after a third of the session's time, gives a silent server up, tries the next one, keeps the
// session, sets its watches again there, and learns that the session is over from a server only.
#pragma once

#include <deque>
#include <set>
#include <vector>

#include "backends/zookeeper/wire/client.hpp"
#include "tests/simulation/zookeeper/wire.hpp"

namespace dlock::simulation {

class SimClient final : public zookeeper::Client, public std::enable_shared_from_this<SimClient> {
 public:
  static std::string address_of(int server);

  SimClient(Wire::Ends ends, Process& process, Options options, Listener& listener);
  ~SimClient() override;
  SimClient(const SimClient&) = delete;
  SimClient& operator=(const SimClient&) = delete;

  bool start() override;
  void close(Job done) override;
  bool connected() const noexcept override { return state_ == State::connected; }
  std::int64_t session_id() const noexcept override { return session_; }
  std::chrono::milliseconds session_timeout() const noexcept override { return timeout_; }
  TimePoint created() const noexcept override { return created_; }
  std::string server() const override;
  void set_addresses(const std::string&) override {}

  zookeeper::PendingReply create(const std::string& path, std::string_view data,
                                 Mode mode) override;
  zookeeper::PendingReply remove(const std::string& path) override;
  zookeeper::PendingReply set(const std::string& path, std::string_view data) override;
  zookeeper::PendingReply set_version(const std::string& path, std::string_view data,
                                      std::int32_t version) override;
  zookeeper::PendingReply remove_version(const std::string& path, std::int32_t version) override;
  zookeeper::PendingReply exists(const std::string& path) override;
  zookeeper::PendingReply get(const std::string& path) override;
  zookeeper::PendingReply get_and_watch(const std::string& path) override;
  zookeeper::PendingReply exists_and_watch(const std::string& path) override;
  zookeeper::PendingReply children(const std::string& path) override;
  zookeeper::PendingReply sync(const std::string& path) override;
  zookeeper::PendingReply prove(const std::string& path) override;
  zookeeper::PendingReply mark_and_remove(const std::string& path, std::string_view data) override;
  zookeeper::PendingReply mark_and_replace(const std::string& path, std::string_view data,
                                           const std::string& heir, std::string_view text,
                                           Mode mode) override;
  zookeeper::PendingReply change_if(const Check& check, const Change& change) override;
  void forget_watch(const std::string& path) override;

  /// Round trips that were begun: requests sent while none was under way.
  std::size_t round_trips() const noexcept { return round_trips_; }
  /// Its process is no more; its kernel closes the connection.
  void crash();
  Process& process() noexcept { return process_; }

 private:
  enum class State { connecting, connected, over, closed };
  struct Request {
    std::uint64_t number;
    ensemble::Operation operation;
    zookeeper::PendingReply result;
    TimePoint sent;
  };

  void cork(bool) noexcept override {}
  zookeeper::PendingReply submit(ensemble::Operation operation);
  void dial();
  void drop();
  void end();
  void step();
  void take(Arrival arrival);
  void on_session(std::int64_t session, milliseconds timeout);
  void finish(Request request, zookeeper::Reply reply, bool committed);
  void lose(int rc);
  void look_at_clock();
  void tell_listener();
  TimePoint patience_ends() const;
  void arm();

  Wire::Ends ends_;
  Process& process_;
  const Options options_;
  Listener* listener_;
  State state_ = State::connecting;
  State told_ = State::connecting;
  std::shared_ptr<Wire> wire_;
  std::deque<Arrival> inbox_;
  std::deque<Request> pending_;
  std::set<std::string> watches_;
  std::set<std::string> absent_watches_;  ///< on nodes that were not there
  std::vector<std::pair<std::string, zookeeper::WatchEvent>> watch_events_;

  std::int64_t session_ = 0;
  milliseconds timeout_{0};
  std::int64_t seen_ = 0;
  std::uint64_t last_number_ = 0;
  std::vector<int> servers_;  ///< by address, the first one to dial first
  int attempts_ = 0;
  std::size_t round_trips_ = 0;
  TimePoint opened_{};
  TimePoint created_{};
  TimePoint dial_at_{};
  TimePoint waiting_{};
  TimePoint last_sent_{};
  TimePoint last_heard_{};
  TimerId timer_ = 0;
};

}  // namespace dlock::simulation

// SPDX-License-Identifier: Apache-2.0
//
// A client of a store without the core, on a loop and thread of its own: for calls of the SPI that
// stand for themselves. Not thread-safe; claims die before their client.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/loop/real_env.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/event_sink.hpp"

namespace dlock::testkit {

/// What happens unasked is nobody's business here.
class DeafSink final : public EventSink {
 public:
  void on_link_up() override {}
  void on_link_down(const Failure&) override {}
  void on_session_gone(LossReason) override {}
  void on_claim_gone(const ClaimPtr&, LossReason) override {}
  void on_capabilities_changed() override {}
  void on_warning(std::string_view) override {}
};

class DirectClient {
 public:
  /// Connected, or the test fails.
  explicit DirectClient(const std::string& url,
                        const OpenOptions& options = OpenOptions::built_in());
  ~DirectClient();
  DirectClient(const DirectClient&) = delete;
  DirectClient& operator=(const DirectClient&) = delete;

  /// What a busy machine may need.
  static TimePoint soon();

  ClaimPtr make(const std::string& name, bool queue = true, std::uint64_t min_token = 0);
  ClaimPtr make_under(GatePtr gate, const std::string& name, bool queue = true);
  ClaimAnswer claim(const ClaimPtr& claim) { return run(backend_->claim(claim, soon())); }
  /// As the core does, behind a record too: claims, waits and claims again until `enough` says so.
  using Enough = bool (*)(const ClaimAnswer&);
  std::future<ClaimAnswer> ask_until(const ClaimPtr& claim, Enough enough);
  void wait(const ClaimPtr& claim) {
    asio::co_spawn(env_.executor(), backend_->wait(claim, soon()), asio::use_future).get();
  }
  /// Ends a wait().
  void interrupt(const ClaimPtr& claim) { run(interrupt_on_loop(claim)); }
  /// Granted, or the test fails.
  ClaimPtr acquire(const std::string& name, std::uint64_t min_token = 0);
  /// As it was granted by acquire().
  std::uint64_t token_of(const ClaimPtr& claim);
  ReleaseStatus release(const ClaimPtr& claim, bool search = false) {
    return run(backend_->release(claim, search, soon())).status;
  }

  RecordAnswer record(const std::string& name) {
    return run(backend_->migration().record(name, soon()));
  }
  RecordAnswer seal(const ClaimPtr& held, const std::string& record) {
    return run(backend_->migration().seal(held, record, soon()));
  }
  std::future<RecordAnswer> start_set(const std::string& name, const std::string& from,
                                      std::optional<std::string> to, std::uint64_t min_token = 0) {
    return start(backend_->migration().set_record(name, from, std::move(to), min_token, soon()));
  }
  RecordAnswer set_record(const std::string& name, const std::string& from,
                          std::optional<std::string> to, std::uint64_t min_token = 0) {
    return start_set(name, from, std::move(to), min_token).get();
  }
  RecordAnswer raise(const ClaimPtr& held, std::uint64_t min_token) {
    return run(backend_->migration().raise(held, min_token, soon()));
  }
  RecordAnswer note(const std::string& key) { return run(backend_->migration().note(key, soon())); }
  std::future<RecordAnswer> start_set_note(const std::string& key, std::optional<std::string> from,
                                           std::optional<std::string> to) {
    return start(backend_->migration().set_note(key, std::move(from), std::move(to), soon()));
  }
  RecordAnswer set_note(const std::string& key, std::optional<std::string> from,
                        std::optional<std::string> to) {
    return start_set_note(key, std::move(from), std::move(to)).get();
  }

  RecordAnswer set_record_under(GatePtr gate, const std::string& name, const std::string& from,
                                std::optional<std::string> to, std::uint64_t min_token = 0) {
    return run(backend_->migration().set_record_under(std::move(gate), name, from, std::move(to),
                                                      min_token, soon()));
  }
  Result<std::vector<std::string>> claimed_names(const std::string& prefix = {}) {
    return run(backend_->migration().claimed_names(prefix, soon()));
  }
  Result<std::uint64_t> highest_token() { return run(backend_->migration().highest_token(soon())); }

  Backend& backend() { return *backend_; }
  template <class T>
  std::future<T> start(asio::awaitable<T> task) {
    return asio::co_spawn(env_.executor(), std::move(task), asio::use_future);
  }
  template <class T>
  T run(asio::awaitable<T> task) {
    return start(std::move(task)).get();
  }

 private:
  asio::awaitable<ClaimAnswer> ask(ClaimPtr claim, Enough enough);
  ClaimPtr make(const std::string& name, bool queue, std::uint64_t min_token, GatePtr gate);
  asio::awaitable<ClaimPtr> make_on_loop(ClaimRequest request);
  asio::awaitable<int> interrupt_on_loop(ClaimPtr claim);
  asio::awaitable<int> end();

  core::RealEnv env_;
  DeafSink sink_;
  std::unique_ptr<Backend> backend_;
  std::map<const Claim*, std::uint64_t> tokens_;
  std::vector<ClaimPtr> claims_;  ///< so that the last of them goes on the loop
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread loop_;
};

}  // namespace dlock::testkit

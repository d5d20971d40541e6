// SPDX-License-Identifier: Apache-2.0
//
// The commands of one procedure to a server, with one deadline, on the shared session.
#pragma once

#include "backends/memcached/wire/session.hpp"

namespace dlock::memcached {

/// Loop only. The session outlives it.
class Call final : public Commands {
 public:
  Call(Session& session, TimePoint deadline) : session_(session), deadline_(deadline) {}

  /// As Session::ready.
  asio::awaitable<Answer> ready() { return session_.ready(deadline_); }

  TimePoint now() const override { return session_.now(); }
  std::int64_t wall_clock_us() const override { return session_.wall_clock_us(); }
  TimePoint deadline() const override { return deadline_; }
  asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                              std::time_t exptime) override {
    return session_.add(key, value, exptime, deadline_);
  }
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              const ItemNumber& number) override {
    return session_.cas(key, value, exptime, number, deadline_);
  }
  asio::awaitable<std::vector<Answer>> cas_all(const std::vector<Replacement>& all) override {
    return session_.cas_all(all, deadline_);
  }
  asio::awaitable<Answer> remove(const std::string& key, const ItemNumber& number) override {
    return session_.remove(key, number, deadline_);
  }
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) override {
    return session_.increment(key, by, deadline_);
  }
  asio::awaitable<Number> seconds_left(const std::string& key) override {
    return session_.seconds_left(key, deadline_);
  }
  asio::awaitable<Found> gets(const std::vector<std::string>& keys) override {
    return session_.gets(keys, deadline_);
  }
  asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys) override {
    return session_.gets_and_canary(std::move(keys), deadline_);
  }
  bool may_grant() const override { return session_.may_grant(); }
  asio::awaitable<Answer> pass_self_test() override { return session_.pass_self_test(deadline_); }
  /// As Session::self_test.
  asio::awaitable<SelfTestReport> self_test() { return session_.self_test(deadline_); }
  asio::awaitable<Answer> refresh_facts() override { return session_.refresh_facts(deadline_); }
  const ServerInfo& info() const override { return session_.info(); }

 private:
  Session& session_;
  const TimePoint deadline_;
};

}  // namespace dlock::memcached

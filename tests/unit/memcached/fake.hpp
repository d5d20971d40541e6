// SPDX-License-Identifier: Apache-2.0
//
// A Memcached server in memory that fails on demand, for the tests of the procedures.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

/// What a procedure comes to that waits for nothing.
template <class T>
T finish(asio::awaitable<T> procedure) {
  asio::io_context context;
  auto result = asio::co_spawn(context, std::move(procedure), asio::use_future);
  context.run();
  return result.get();
}

class FakeServer final : public Commands {
 public:
  enum class Fault {
    none,
    not_sent,
    request_lost,  ///< not executed, and not answered in time
    reply_lost,    ///< executed, and not answered in time
    broken,        ///< not executed; the connection broke
    broken_after,  ///< executed; the connection broke
    slow,          ///< executed, and answered after a second
    no_memory,
    not_a_number,
  };

  struct Entry {
    std::string value;
    std::uint64_t cas = 0;
    TimePoint until = kNever;
  };

  /// One for each command from now on; then none.
  std::deque<Fault> faults;
  /// `add`, `cas`, `incr`, `gets`, `stats`, in the order of sending.
  std::vector<std::string> log;
  std::map<std::string, Entry, std::less<>> items;
  TimePoint clock{std::chrono::hours(1)};
  std::int64_t wall_us = 1'700'000'000'000'000;
  TimePoint gives_up = kNever;
  ServerInfo now_says;
  /// Knows meta commands, and says what it stores under which number.
  bool tells_numbers = false;
  std::uint64_t era = 1;
  /// The results of the self-tests that are still to be passed.
  std::deque<Answer> self_tests;
  /// Called before each command: what others do meanwhile.
  std::function<void(const std::string& command)> meanwhile;

  void put(const std::string& key, const std::string& value) {
    items[key] = {value, ++cas_, kNever};
  }
  bool has(const std::string& key) {
    const auto found = items.find(key);
    return found != items.end() && found->second.until > clock;
  }

  TimePoint now() const override { return clock; }
  std::int64_t wall_clock_us() const override { return wall_us; }
  TimePoint deadline() const override { return gives_up; }

  asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                              std::time_t exptime) override {
    co_return execute("add", [&]() -> Answer {
      if (has(key)) return {Outcome::not_stored, {}, {}};
      return store(key, value, exptime);
    });
  }

  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              const ItemNumber& number) override {
    if (number.era != era) co_return Answer{Outcome::exists, {}, {}};
    co_return execute("cas", [&]() -> Answer {
      if (!has(key)) return {Outcome::not_found, {}, {}};
      if (items[key].cas != number.cas) return {Outcome::exists, {}, {}};
      return store(key, value, exptime);
    });
  }

  asio::awaitable<std::vector<Answer>> cas_all(const std::vector<Replacement>& all) override {
    std::vector<Answer> answers;
    for (const auto& one : all) {
      answers.push_back(co_await cas(one.key, one.value, one.exptime, one.number));
    }
    co_return answers;
  }

  asio::awaitable<Answer> remove(const std::string& key, const ItemNumber& number) override {
    if (number.era != era) co_return Answer{Outcome::exists, {}, {}};
    co_return execute("remove", [&]() -> Answer {
      if (!has(key)) return {Outcome::not_found, {}, {}};
      if (items[key].cas != number.cas) return {Outcome::exists, {}, {}};
      items.erase(key);
      return {Outcome::done, {}, {}};
    });
  }

  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) override {
    Number number;
    number.answer = execute("incr", [&]() -> Answer {
      if (!has(key)) return {Outcome::not_found, {}, {}};
      number.value = std::stoull(items[key].value) + by;
      items[key].value = std::to_string(number.value);
      return {Outcome::done, {}, {}};
    });
    co_return number;
  }

  asio::awaitable<Found> gets(const std::vector<std::string>& keys) override {
    Found found;
    found.answer = execute("gets", [&]() -> Answer {
      for (const auto& key : keys) {
        if (has(key)) found.items[key] = {items[key].value, {items[key].cas, era}};
      }
      return {Outcome::done, {}, {}};
    });
    if (found.answer.outcome == Outcome::unknown) found.answer.outcome = Outcome::unavailable;
    co_return found;
  }
  asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys) override {
    co_return co_await gets(keys);
  }

  bool may_grant() const override { return self_tests.empty(); }
  asio::awaitable<Answer> pass_self_test() override {
    log.push_back("self-test");
    auto answer = std::move(self_tests.front());
    self_tests.pop_front();
    co_return answer;
  }

  asio::awaitable<Answer> refresh_facts() override {
    co_return execute("stats", [&]() -> Answer {
      info_ = now_says;
      return {Outcome::done, {}, {}};
    });
  }
  const ServerInfo& info() const override { return info_; }

 private:
  Answer store(const std::string& key, const std::string& value, std::time_t exptime) {
    auto until = clock + std::chrono::seconds(exptime);
    if (exptime == 0) until = kNever;
    if (exptime >= kPastExpiry) until = TimePoint{};
    items[key] = {value, ++cas_, until};
    if (!tells_numbers) return {Outcome::done, {}, {}};
    return {Outcome::done, {}, {cas_, era}};
  }

  template <class Command>
  Answer execute(const std::string& name, Command command) {
    if (meanwhile) meanwhile(name);
    const auto fault = faults.empty() ? Fault::none : faults.front();
    if (!faults.empty()) faults.pop_front();
    log.push_back(name);
    switch (fault) {
      case Fault::none:
        return command();
      case Fault::not_sent:
        return {Outcome::unavailable, failure(Error::not_connected), {}};
      case Fault::request_lost:
        return {Outcome::unknown, failure(Error::no_answer), {}};
      case Fault::reply_lost:
        command();
        return {Outcome::unknown, failure(Error::no_answer), {}};
      case Fault::broken:
        return {Outcome::unknown, failure(Error::connection_lost), {}};
      case Fault::broken_after:
        command();
        return {Outcome::unknown, failure(Error::connection_lost), {}};
      case Fault::slow: {
        auto answer = command();
        clock += std::chrono::seconds(1);
        return answer;
      }
      case Fault::no_memory:
        return {Outcome::refused, failure(Error::out_of_memory), {}};
      case Fault::not_a_number:
        return {Outcome::refused, failure(Error::refused, "non-numeric"), {}};
    }
    return {};
  }

  std::uint64_t cas_ = 0;
  ServerInfo info_;
};

}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// The self-test's commands, on a server in memory that ignores conditions or answers with failures.
#include "backends/memcached/wire/self_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/names.hpp"
#include "tests/unit/memcached/fake.hpp"

namespace dlock::memcached {
namespace {

using Verdict = SelfTest::Verdict;
using testing::ElementsAre;

/// Carries out a command when it is sent, as a connection does that keeps the order.
class SmallClient final : public Client {
 public:
  bool has_meta = true;
  bool ignores_add = false;
  bool ignores_cas = false;
  bool ignores_delete = false;
  bool keeps_nothing = false;
  /// For commands with that name, instead of being carried out.
  std::map<std::string, Answer> failures;
  /// Called after each command.
  std::function<void()> meanwhile;

  std::vector<std::string> log;
  std::map<std::string, Item, std::less<>> items;
  std::vector<std::time_t> exptimes;

  void drop() noexcept override {}
  void close() noexcept override {}
  bool is_open() const noexcept override { return true; }
  asio::awaitable<Answer> add(const std::string& key, const std::string& value, std::time_t exptime,
                              TimePoint) override {
    exptimes.push_back(exptime);
    return answered("add", [&]() -> Answer {
      if (items.contains(key) && !ignores_add) return {Outcome::not_stored, {}, {}};
      return store(key, value, exptime);
    });
  }
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas, TimePoint) override {
    return answered("cas", [&]() -> Answer {
      if (ignores_cas) return store(key, value, exptime);
      if (!items.contains(key)) return {Outcome::not_found, {}, {}};
      if (items[key].number.cas != cas) return {Outcome::exists, {}, {}};
      return store(key, value, exptime);
    });
  }
  asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas, TimePoint) override {
    if (!has_meta) return ready(Answer{Outcome::exists, {}, {}});
    return answered("remove", [&]() -> Answer {
      if (!items.contains(key)) return {Outcome::not_found, {}, {}};
      if (items[key].number.cas != cas && !ignores_delete) return {Outcome::exists, {}, {}};
      items.erase(key);
      return {Outcome::done, {}, {}};
    });
  }
  asio::awaitable<Number> increment(const std::string&, std::uint64_t, TimePoint) override {
    co_return Number{};
  }
  asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint) override {
    Found found;
    found.answer = carried_out("gets", [&]() -> Answer {
      for (const auto& key : keys) {
        if (items.contains(key) && !keeps_nothing) found.items[key] = items[key];
      }
      return {Outcome::done, {}, {}};
    });
    return ready(std::move(found));
  }
  asio::awaitable<Answer> stats(ServerInfo&, TimePoint) override { co_return Answer{}; }
  asio::awaitable<Answer> settings(ServerInfo&, TimePoint) override { co_return Answer{}; }

 private:
  asio::awaitable<Answer> open_now(TimePoint) override { co_return Answer{}; }

  template <class T>
  static asio::awaitable<T> ready(T result) {
    co_return std::move(result);
  }
  Answer store(const std::string& key, const std::string& value, std::time_t exptime) {
    items[key] = {value, {++last_, 1}};
    if (exptime >= kPastExpiry) items.erase(key);
    return {Outcome::done, {}, has_meta ? ItemNumber{last_, 1} : ItemNumber{}};
  }
  template <class Command>
  Answer carried_out(const std::string& name, Command command) {
    log.push_back(name);
    const auto found = failures.find(name);
    auto answer = found == failures.end() ? command() : found->second;
    if (meanwhile) meanwhile();
    return answer;
  }
  template <class Command>
  asio::awaitable<Answer> answered(const std::string& name, Command command) {
    return ready(carried_out(name, std::move(command)));
  }

  std::uint64_t last_ = 0;
};

class MemcachedSelfTest : public testing::Test {
 protected:
  SelfTest run() { return finish(send_self_test(client_, self_test_order("k", "id", 5), kNever)); }
  std::string failed_step() {
    const auto test = run();
    EXPECT_EQ(test.verdict(), Verdict::wrong);
    for (const auto& step : test.report("").steps) {
      if (step.result == SelfTestReport::Result::wrong) return step.name;
    }
    return {};
  }

  SmallClient client_;
};

TEST_F(MemcachedSelfTest, PassesInBothDialectsAndLeavesNothing) {
  EXPECT_EQ(run().verdict(), Verdict::passed);
  EXPECT_THAT(client_.log, ElementsAre("add", "add", "cas", "remove", "gets", "remove"));
  EXPECT_THAT(client_.exptimes, ElementsAre(10, 10));
  EXPECT_TRUE(client_.items.empty());
  client_.has_meta = false;
  client_.log.clear();
  EXPECT_EQ(run().verdict(), Verdict::passed);
  EXPECT_THAT(client_.log, ElementsAre("add", "add", "cas", "gets", "cas"));
  EXPECT_TRUE(client_.items.empty());
}

TEST_F(MemcachedSelfTest, FindsEachIgnoredCondition) {
  client_.ignores_add = true;
  EXPECT_EQ(failed_step(), "acquire as another owner");
  client_.ignores_add = false;
  client_.items.clear();
  client_.ignores_cas = true;
  EXPECT_EQ(failed_step(), "release as another owner");
  client_.ignores_cas = false;
  client_.items.clear();
  client_.ignores_delete = true;
  EXPECT_EQ(failed_step(), "release as another owner");
  client_.ignores_delete = false;
  client_.items.clear();
  client_.keeps_nothing = true;
  EXPECT_EQ(failed_step(), "read back");
}

TEST_F(MemcachedSelfTest, AServerThatAlwaysRefusesFailsTheFirstStep) {
  client_.failures["add"] = {Outcome::not_stored, {}, {}};
  EXPECT_EQ(failed_step(), "acquire");
}

TEST_F(MemcachedSelfTest, AnErrorIsNotAWrongAnswer) {
  struct Row {
    Answer answer;
    Verdict verdict;
  };
  const Row rows[] = {
      {{Outcome::refused, failure(Error::out_of_memory), {}}, Verdict::unanswered},
      {{Outcome::refused, failure(Error::refused, "ERROR"), {}}, Verdict::denied},
      {{Outcome::refused, failure(Error::access_denied), {}}, Verdict::denied},
      {{Outcome::unknown, failure(Error::no_answer), {}}, Verdict::unanswered},
      {{Outcome::unknown, failure(Error::server_error), {}}, Verdict::unanswered},
      {{Outcome::unavailable, failure(Error::closed), {}}, Verdict::unanswered},
  };
  for (const auto* command : {"add", "cas", "remove"}) {
    for (const auto& [answer, verdict] : rows) {
      client_.items.clear();
      client_.failures = {{command, answer}};
      EXPECT_EQ(run().verdict(), verdict) << command << ": " << answer.failure.error.message();
    }
  }
  client_.items.clear();
  client_.failures = {{"gets", {Outcome::unavailable, failure(Error::no_answer), {}}}};
  EXPECT_EQ(run().verdict(), Verdict::unanswered);
}

// The number that was read says nothing on another connection.
TEST_F(MemcachedSelfTest, NothingIsRemovedOnAnotherConnection) {
  client_.meanwhile = [&] {
    if (client_.log.back() == "gets") client_.begin_era();
  };
  EXPECT_EQ(run().verdict(), Verdict::unanswered);
  EXPECT_EQ(client_.log.back(), "gets");
}

TEST(MemcachedSelfTestOrder, TheKeyDiffersFromEveryLocksAndTheNumberFromEveryItems) {
  const KeyMap names("a{name}z");
  EXPECT_EQ(names.self_test_key("id"), "a%self-test-idz");
  for (const std::uint64_t random : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
    const auto order = self_test_order("k", "id", random);
    EXPECT_GE(order.wrong_number, std::uint64_t{1} << 62U);
    EXPECT_LT(order.wrong_number, std::uint64_t{1} << 63U);
    EXPECT_NE(order.value, order.other_value);
  }
}

}  // namespace
}  // namespace dlock::memcached

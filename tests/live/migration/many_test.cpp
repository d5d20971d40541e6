// SPDX-License-Identifier: Apache-2.0
//
// What the steps of a plan take and cost with many names and many programs: a few here, so that the
// requests of an operator's command are seen to be so many for each name and no more; as many as
// one likes with DLOCK_MANY_NAMES and DLOCK_MANY_PROGRAMS.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/lock_manager.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "testkit/zookeeper_frames.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

constexpr auto kPatience = 30min;
/// So many acquires are under way together: what is measured is a plan's steps, not how many
/// requests a server answers in time.
constexpr std::size_t kAtOnce = 256;

/// What one command took and asked for.
struct Step {
  std::string name;
  std::chrono::milliseconds took{0};
  std::uint64_t requests = 0;  ///< to both stores
};

class MigrationMany : public testing::Test {
 protected:
  void SetUp() override {
    zookeeper_.start();
    redis_.start();
    to_zookeeper_.emplace(zookeeper_.port(), frames_.filter());
    to_redis_.emplace(redis_.port());
  }

  std::string config(const std::string& from, const std::string& to, const std::string& plan,
                     bool by_proxy) {
    const auto file = folder_ / fmt::format("{}-{}.yaml", plan, by_proxy ? "operator" : "program");
    write_file(file,
               fmt::format("stores:\n  zk: \"zookeeper://127.0.0.1:{}/{}?session_timeout=10s\"\n"
                           "  redis: \"redis://127.0.0.1:{}/0?lease=30s\"\nlocks:\n  - {{ match: "
                           "\"{}/**\", migrate: {{ from: {}, to: {}, plan: {} }} }}\n",
                           by_proxy ? to_zookeeper_->port() : zookeeper_.port(), plan,
                           by_proxy ? to_redis_->port() : redis_.port(), plan, from, to, plan));
    return file.string();
  }

  ProcessOptions command(const std::string& file, std::vector<std::string> arguments) const {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", file, "migrate"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    return options;
  }
  std::uint64_t requests() const {
    return frames_.requests() + to_redis_->stats().to_server.segments;
  }
  void migrate(const std::string& file, const std::vector<std::string>& arguments) {
    const auto asked = requests();
    const auto begun = Clock::now();
    Process process(command(file, arguments));
    const auto status = process.wait(within(kPatience));
    Step step;
    step.name = arguments[0];
    step.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun);
    step.requests = requests() - asked;
    steps_.push_back(step);
    ASSERT_TRUE(status && status->success())
        << process.unread_stdout() << process.collected_stderr();
  }

  using Handles = std::vector<LockHandle>;
  /// Each program holds its share of the names.
  Handles take_all(const std::string& plan, std::size_t names, const std::string& store) {
    std::vector<std::future<LockHandle>> under_way;
    for (std::size_t i = 0; i < names; ++i) {
      if (i >= kAtOnce) under_way[i - kAtOnce].wait();
      auto told = std::make_shared<std::promise<LockHandle>>();
      under_way.push_back(told->get_future());
      auto& program = programs_.at(i % programs_.size());
      program.lock(fmt::format("{}/{}", plan, i))
          ->async_acquire({.wait = 5min}, [told](error_code ec, LockHandle handle) {
            EXPECT_FALSE(ec) << ec.message();
            told->set_value(std::move(handle));
          });
    }
    Handles handles;
    for (auto& one : under_way) {
      handles.push_back(one.get());
      EXPECT_EQ(handles.back() ? handles.back().store() : "nowhere", store);
    }
    return handles;
  }

  /// Nobody has one of them any more: who drains them asks once for each.
  static void give_back(Handles& handles) {
    for (auto& handle : handles) handle.release();
    handles.clear();
  }

  /// All steps of a plan of its own with so many names.
  std::vector<Step> go_through(const std::string& from, const std::string& to,
                               const std::string& plan, std::size_t names, std::size_t programs) {
    steps_.clear();
    const auto operators = config(from, to, plan, true);
    const auto file = config(from, to, plan, false);
    for (std::size_t i = 0; i < programs; ++i) {
      auto options = OpenOptions::built_in();
      options.log = [](LogLevel, std::string_view) {};
      programs_.push_back(LockManager::from_file(file, std::move(options)));
    }
    auto held = take_all(plan, names, from);
    migrate(operators, {"plan", plan});
    migrate(operators, {"start", plan});
    give_back(held);
    migrate(operators, {"advance", plan, "--all", "--wait", "5m"});
    auto there = take_all(plan, names, to);
    migrate(operators, {"status", plan});
    give_back(there);
    migrate(operators, {"rollback", plan, "--all", "--wait", "5m"});
    auto back = take_all(plan, names, from);
    give_back(back);
    migrate(operators, {"advance", plan, "--all", "--wait", "5m"});
    auto again = take_all(plan, names, to);
    migrate(operators, {"finish", plan, "--all", "--wait", "5m"});
    again.clear();
    programs_.clear();
    for (const auto& step : steps_) {
      fmt::print("{} -> {}, {} names, {} programs: {} took {} ms, {} requests\n", from, to, names,
                 programs, step.name, step.took.count(), step.requests);
    }
    return steps_;
  }

  /// Twice as many names cost twice as much. Redis' share is counted in segments, and how many
  /// commands share one depends on the moment: a quarter more is not seen as more. And who lists
  /// the claims in Redis asks about each lock that stands there, 256 at once: those too that the
  /// plan of the few has left sealed, half as many as there are names now.
  void measure(const std::string& from, const std::string& to) {
    const auto names = number_from("DLOCK_MANY_NAMES", 200);
    const auto programs = number_from("DLOCK_MANY_PROGRAMS", 4);
    const auto few = go_through(from, to, "few", names / 2, programs);
    const auto many = go_through(from, to, "many", names, programs);
    ASSERT_EQ(few.size(), many.size());
    for (std::size_t i = 0; i < few.size(); ++i) {
      EXPECT_LE(many[i].requests, 2 * few[i].requests + few[i].requests / 4 + 50 + names / 40)
          << few[i].name;
    }
  }

  TempDir folder_{"dlock-many"};
  ZooKeeperServer zookeeper_;
  RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> to_zookeeper_;
  std::optional<FaultProxy> to_redis_;
  std::vector<LockManager> programs_;
  std::vector<Step> steps_;
};

TEST_F(MigrationMany, ZooKeeperToRedisIsLinear) { measure("zk", "redis"); }
TEST_F(MigrationMany, RedisToZooKeeperIsLinear) { measure("redis", "zk"); }

}  // namespace
}  // namespace dlock::testkit

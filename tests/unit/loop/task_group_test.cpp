// SPDX-License-Identifier: Apache-2.0
#include "core/loop/task_group.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <stdexcept>
#include <string>

#include "tests/support/virtual_env.hpp"

namespace dlock::core {
namespace {

using std::chrono::seconds;

asio::awaitable<void> write(std::string& out, char what) {
  out += what;
  co_return;
}

asio::awaitable<void> write_later(Env& env, std::string& out, char what, Duration later) {
  co_await sleep_until(env, env.now() + later);
  out += what;
}

asio::awaitable<void> fail() {
  throw std::runtime_error("a task");
  co_return;
}

asio::awaitable<void> wait_idle(TaskGroup& group, TimePoint until, std::string& out) {
  const bool is_idle = co_await group.wait_idle(until);
  out += is_idle ? '.' : '?';
}

TEST(TaskGroup, OneCoroutineRunsTaskAfterTask) {
  tests::VirtualEnv env;
  TaskGroup group(env);
  std::string out;
  for (const char what : {'a', 'b', 'c'}) {
    group.spawn(write(out, what));
    env.run_for(seconds(1));
  }
  EXPECT_EQ(out, "abc");
}

TEST(TaskGroup, ATaskThatThrowsEndsAlone) {
  tests::VirtualEnv env;
  TaskGroup group(env);
  std::string out;
  group.spawn(fail());
  env.run_for(seconds(1));
  group.spawn(write(out, 'a'));
  env.run_for(seconds(1));
  EXPECT_EQ(out, "a");
}

TEST(TaskGroup, IsIdleWhenItsLastTaskHasEnded) {
  tests::VirtualEnv env;
  TaskGroup group(env);
  std::string out;
  for (int i = 0; i < 40; ++i) group.spawn(write_later(env, out, 'a', seconds(2)));
  asio::co_spawn(env.executor(), wait_idle(group, env.now() + seconds(1), out), asio::detached);
  env.run_for(Duration(seconds(1)) + std::chrono::milliseconds(1));
  EXPECT_EQ(out, "?");
  asio::co_spawn(env.executor(), wait_idle(group, kNever, out), asio::detached);
  env.run_for(seconds(2));
  EXPECT_EQ(out, "?" + std::string(40, 'a') + ".");
  // Those that rest are no tasks.
  group.spawn(write_later(env, out, 'b', seconds(1)));
  asio::co_spawn(env.executor(), wait_idle(group, kNever, out), asio::detached);
  env.run_for(seconds(2));
  EXPECT_TRUE(out.ends_with("b."));
}

TEST(TaskGroup, AsManyAsRanAtOnceTakeTheNextTasks) {
  tests::VirtualEnv env;
  TaskGroup group(env);
  std::string out;
  const auto begin = [&](int tasks) {
    for (int i = 0; i < tasks; ++i) group.spawn(write_later(env, out, 'a', seconds(1)));
  };
  begin(500);
  EXPECT_EQ(group.resting(), 0U);
  env.run_for(seconds(2));
  EXPECT_EQ(group.resting(), 500U);
  begin(300);
  EXPECT_EQ(group.resting(), 200U) << "none is made anew";
  env.run_for(seconds(2));
  EXPECT_EQ(group.resting(), 500U);
  begin(5000);
  env.run_for(seconds(2));
  EXPECT_GE(group.resting(), 1000U);
  EXPECT_LE(group.resting(), 1100U) << "what rests is memory that nobody else has";
  EXPECT_EQ(out.size(), 5800U);
}

TEST(TaskGroup, EndsWithCoroutinesThatRest) {
  tests::VirtualEnv env;
  std::string out;
  {
    TaskGroup group(env);
    for (int i = 0; i < 3; ++i) group.spawn(write(out, 'a'));
    env.run_for(seconds(1));
  }
  env.run_for(seconds(1));
  EXPECT_EQ(out, "aaa");
}

TEST(TaskGroup, ThoseThatAreDismissedEndAndNobodyRestsAfterThem) {
  tests::VirtualEnv env;
  std::string out;
  TaskGroup group(env);
  for (int i = 0; i < 3; ++i) group.spawn(write_later(env, out, 'a', seconds(1)));
  env.run_for(seconds(2));
  group.dismiss();
  group.spawn(write_later(env, out, 'b', seconds(1)));
  asio::co_spawn(env.executor(), wait_idle(group, kNever, out), asio::detached);
  env.run_for(seconds(2));
  EXPECT_EQ(out, "aaab.");
}

}  // namespace
}  // namespace dlock::core

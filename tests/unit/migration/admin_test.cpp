// SPDX-License-Identifier: Apache-2.0
//
// What an operator does to a plan, from configuration to report, without the command around it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "backends/memory/store.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"
#include "migration/admin.hpp"

namespace dlock::core::migration {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Its stores are its own, and there when nobody uses them.
class AdminOfAPlan : public testing::Test {
 protected:
  AdminOfAPlan() {
    static int number = 0;
    const auto tail = std::to_string(++number);
    for (const auto* name : {"ad-s", "ad-t"}) {
      kept_.push_back(memory::SharedStore::get(name + tail));
    }
    stores_ =
        "stores: { s: \"memory://ad-s" + tail + "\", t: \"memory://ad-t" + tail + "\" }\nlocks:\n";
  }

  Config config(const std::string& routes) const {
    return Config::from_yaml(stores_ + routes, "test.yaml");
  }
  static OpenOptions options() {
    OpenOptions options;
    options.backends = {&memory::backend()};
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }
  std::unique_ptr<Admin> admin(const std::string& routes = kMove, const std::string& plan = "p") {
    return std::make_unique<Admin>(config(routes), options(), plan,
                                   [this](const std::string& line) {
                                     const std::scoped_lock guard(mutex_);
                                     told_.push_back(line);
                                   });
  }
  std::vector<std::string> told() {
    const std::scoped_lock guard(mutex_);
    return told_;
  }
  LockManager program(const std::string& routes) const {
    return LockManager::from_config(config(routes), options());
  }
  static StepRequest all(Goal goal) {
    StepRequest request;
    request.goal = goal;
    request.all = true;
    return request;
  }

  inline static const std::string kMove =
      "  - { match: \"x/**\", migrate: { from: s, to: t, plan: p } }\n";
  inline static const std::string kLeased =
      "  - { match: \"x/**\", migrate: { from: s, to: t, plan: p, gate: t } }\n";
  inline static const std::string kSourceAlone = "  - { match: \"**\", store: s }\n";

 private:
  std::vector<std::shared_ptr<memory::SharedStore>> kept_;
  std::string stores_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

/// The sentence of a Refusal, else empty.
template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const Refusal& refused) {
    return refused.why;
  }
  return {};
}

TEST_F(AdminOfAPlan, IsThereOnlyIfARouteHasThePlan) {
  EXPECT_THROW(admin(kMove, "other"), LockError);
  EXPECT_THROW(admin(kMove + "  - { match: \"y/**\", migrate: { from: t, to: s, plan: p } }\n"),
               LockError);
  EXPECT_THROW(admin(kLeased, "other"), LockError);
  EXPECT_FALSE(admin()->is_leased());
  EXPECT_TRUE(admin(kLeased)->is_leased());
}

TEST_F(AdminOfAPlan, GoesThereAndBackAndForGood) {
  const auto operated = admin();
  auto& move = operated->move();
  EXPECT_THAT(refusal([&] { move.status(); }), HasSubstr("was not started"));
  EXPECT_THAT(refusal([&] { move.step(all(Goal::advance)); }), HasSubstr("was not started"));
  EXPECT_FALSE(move.plan({}).started);
  EXPECT_TRUE(move.start({}).started);

  auto one = all(Goal::advance);
  one.all = false;
  one.names = {"y"};
  EXPECT_THAT(refusal([&] { move.step(one); }), HasSubstr("'y' is not in plan 'p'"));
  one.names = {"x/1"};
  EXPECT_EQ(verdict_on(move.step(one).steps), Verdict::done);
  EXPECT_EQ(program(kMove).lock("x/1")->acquire().store(), "t");
  EXPECT_EQ(program(kMove).lock("x/2")->acquire().store(), "s");

  one.goal = Goal::finish;
  EXPECT_THROW(move.step(one), Misuse);
  auto steps = move.step(all(Goal::advance));
  ASSERT_TRUE(steps.gate);
  EXPECT_EQ(steps.gate->state, GateState::turned);
  steps = move.step(all(Goal::rollback));
  EXPECT_EQ(steps.gate->state, GateState::open);
  EXPECT_EQ(program(kMove).lock("x/1")->acquire().store(), "s");

  move.step(all(Goal::advance));
  steps = move.step(all(Goal::finish));
  EXPECT_TRUE(steps.finished);
  EXPECT_EQ(steps.gate->state, GateState::final_);
  EXPECT_TRUE(move.status().finished);
}

TEST_F(AdminOfAPlan, GovernsWhatItsRoutesMatch) {
  const auto before = "  - { match: \"x/1\", store: t }\n" + kMove;
  EXPECT_THAT(admin(before)->move().plan({}).objections,
              ElementsAre(HasSubstr("comes before that of 'x/**'")));
  ASSERT_TRUE(admin()->move().start({}).started);
  const auto wider = kMove + "  - { match: \"y/**\", migrate: { from: s, to: t, plan: p } }\n";
  EXPECT_THAT(refusal([&] { admin(wider)->move().step(all(Goal::advance)); }),
              HasSubstr("has it for 'y/**'"));
}

TEST_F(AdminOfAPlan, StartsBesideStrangersOnlyIfItIsTold) {
  auto stranger = program(kSourceAlone);
  const auto held = stranger.lock("x/1")->acquire();
  const auto operated = admin();
  StartRequest request;
  const auto refused = operated->move().start(request);
  EXPECT_FALSE(refused.started);
  EXPECT_THAT(refused.objections, ElementsAre(HasSubstr("1 program in 's' locks without")));
  EXPECT_THAT(refused.names, ElementsAre("x/1"));
  request.with_strangers = true;
  EXPECT_TRUE(operated->move().start(request).started);
}

TEST_F(AdminOfAPlan, EndsAStepThatIsToldToStop) {
  const auto operated = admin();
  ASSERT_TRUE(operated->move().start({}).started);
  EXPECT_FALSE(operated->stop()) << "nothing is under way";
  auto worker = program(kMove);
  auto held = worker.lock("x/1")->acquire();
  auto waiting = all(Goal::advance);
  waiting.wait = kWaitForever;
  auto step = std::async(std::launch::async, [&] { return operated->move().step(waiting); });
  // What it asks the stores before is not to be stopped.
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (!operated->stop()) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    std::this_thread::yield();
  }
  EXPECT_THROW(step.get(), Stopped);
  EXPECT_FALSE(operated->stop());
  EXPECT_EQ(held.state(), HandleState::held);
  held.release();
  EXPECT_EQ(verdict_on(operated->move().step(waiting).steps), Verdict::done) << "it goes on";
}

/// Turns of a gate with this lease take half a second.
StartRequest short_lease() {
  StartRequest request;
  request.plan.gate_lease = kShortestGateLease;
  return request;
}

StepRequest leased_step(Goal goal) {
  StepRequest request;
  request.goal = goal;
  request.legacy_gone = true;
  return request;
}

TEST_F(AdminOfAPlan, TurnsItsGateThereAndBackAndForGood) {
  const auto operated = admin(kLeased);
  auto& leased = operated->leased();
  EXPECT_THAT(refusal([&] { leased.status(); }), HasSubstr("was not started"));
  EXPECT_THAT(refusal([&] { leased.step(leased_step(Goal::advance)); }),
              HasSubstr("was not started"));
  const auto planned = leased.plan(short_lease().plan);
  EXPECT_THAT(planned.objections, IsEmpty());
  EXPECT_EQ(planned.plan.gate, "t");
  EXPECT_EQ(planned.plan.lease, kShortestGateLease);
  EXPECT_THAT(planned.plan.patterns, ElementsAre("x/**"));
  const auto started = leased.start(short_lease());
  ASSERT_FALSE(started.refused);
  EXPECT_EQ(started.step.report.verdict, Verdict::done) << started.step.report.text;
  EXPECT_EQ(started.step.plan.id.size(), 16U);
  ASSERT_TRUE(leased.status().gate);
  EXPECT_EQ(leased.status().gate->state, LeasedState::source);

  auto worker = program(kLeased);
  const auto held = worker.lock("x/1")->acquire();
  EXPECT_EQ(held.store(), "s");
  auto step = leased.step(leased_step(Goal::advance));
  EXPECT_EQ(step.report.verdict, Verdict::done) << step.report.text;
  EXPECT_EQ(step.report.gate->state, LeasedState::target);
  EXPECT_EQ(held.state(), HandleState::held) << "a turn ends no hold";
  // Until it reads the gate again, it acquires both.
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (worker.lock("x/2")->acquire().store() != "t") {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
  }
  step = leased.step(leased_step(Goal::rollback));
  EXPECT_EQ(step.report.gate->state, LeasedState::source) << step.report.text;
  step = leased.step(leased_step(Goal::finish));
  EXPECT_EQ(step.report.verdict, Verdict::refused);
  EXPECT_FALSE(step.finished);
  leased.step(leased_step(Goal::advance));
  step = leased.step(leased_step(Goal::finish));
  EXPECT_TRUE(step.finished) << step.report.text;
  EXPECT_FALSE(step.withdrawn);
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_F(AdminOfAPlan, IsOverWhenItIsWithdrawn) {
  const auto operated = admin(kLeased);
  auto& leased = operated->leased();
  ASSERT_EQ(leased.start(short_lease()).step.report.verdict, Verdict::done);
  auto back = leased_step(Goal::rollback);
  back.withdraw = true;
  const auto step = leased.step(back);
  EXPECT_TRUE(step.withdrawn) << step.report.text;
  EXPECT_THAT(refusal([&] { leased.status(); }), HasSubstr("was not started"));
  const auto again = leased.start(short_lease());
  EXPECT_EQ(again.step.report.verdict, Verdict::done) << again.step.report.text;
  EXPECT_EQ(leased.status().gate->state, LeasedState::source);
}

TEST_F(AdminOfAPlan, IsOperatedByTheKindOfRouteThatItWasStartedWith) {
  ASSERT_TRUE(admin()->move().start({}).started);
  const auto with_gate = admin(kLeased);
  const std::string sentence = "was started without `gate`";
  EXPECT_THAT(refusal([&] { with_gate->leased().status(); }), HasSubstr(sentence));
  EXPECT_THAT(refusal([&] { with_gate->leased().start(short_lease()); }), HasSubstr(sentence));
}

TEST_F(AdminOfAPlan, WithAGateIsNotOperatedWithoutIt) {
  ASSERT_EQ(admin(kLeased)->leased().start(short_lease()).step.report.verdict, Verdict::done);
  const auto without = admin();
  const auto is_refused = HasSubstr(
      "was started with `gate: t`; write it into the route: `- { match: \"x/**\", "
      "migrate: { from: s, to: t, plan: p, gate: t } }`");
  EXPECT_THAT(refusal([&] { without->move().start({}); }), is_refused);
  EXPECT_THAT(refusal([&] { without->move().status(); }), is_refused);
  EXPECT_THAT(refusal([&] { without->move().step(all(Goal::advance)); }), is_refused);
}

TEST_F(AdminOfAPlan, TellsWhatATurnWaitsFor) {
  const auto operated = admin(kLeased);
  ASSERT_EQ(operated->leased().start(short_lease()).step.report.verdict, Verdict::done);
  EXPECT_THAT(told(), IsEmpty());
  auto hurried = leased_step(Goal::advance);
  hurried.wait = 0ms;
  const auto step = operated->leased().step(hurried);
  EXPECT_EQ(step.report.verdict, Verdict::waiting);
  EXPECT_THAT(step.report.text, HasSubstr("set --wait above"));
  EXPECT_EQ(step.report.gate->state, LeasedState::source_then_target);
  EXPECT_EQ(operated->leased().step(leased_step(Goal::advance)).report.verdict, Verdict::done);
  EXPECT_THAT(told(), testing::Contains(HasSubstr("waits until every program has read the gate")));
}

TEST_F(AdminOfAPlan, EndsAWaitForReadingsThatIsToldToStop) {
  const auto operated = admin(kLeased);
  StartRequest long_lease;
  long_lease.plan.gate_lease = kLongestGateLease;
  ASSERT_EQ(operated->leased().start(long_lease).step.report.verdict, Verdict::done);
  auto waiting = leased_step(Goal::advance);
  waiting.wait = kWaitForever;
  auto step = std::async(std::launch::async, [&] { return operated->leased().step(waiting); });
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (!operated->stop()) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    std::this_thread::yield();
  }
  EXPECT_THROW(step.get(), Stopped);
}

}  // namespace
}  // namespace dlock::core::migration

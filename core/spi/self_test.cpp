// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/self_test/gate.hpp"

#include <fmt/format.h>

#include <array>

#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {
namespace {

using TestKind = SelfTestAnswer::Kind;
using Verdict = SelfTest::Verdict;

struct Rule {
  SelfTestStep step;
  const char* name;
  TestKind expected;
  const char* wrong;  ///< The text of a wrong answer.
};

constexpr std::array<Rule, 5> kRules{{
    {SelfTestStep::acquire, "acquire", TestKind::yes, "it does not grant a new lock"},
    {SelfTestStep::acquire_as_another, "acquire as another owner", TestKind::no,
     "it grants a lock that another owner holds"},
    {SelfTestStep::release_as_another, "release as another owner", TestKind::no,
     "it releases the lock of another owner"},
    {SelfTestStep::read_back, "read back", TestKind::yes, "it does not return what was stored"},
    {SelfTestStep::remove, "remove", TestKind::yes, "it does not release the lock of its owner"},
}};

const Rule& rule_of(SelfTestStep step) noexcept { return kRules[static_cast<std::size_t>(step)]; }

Verdict verdict_of(TestKind answer, TestKind expected) noexcept {
  if (answer == TestKind::unanswered) return Verdict::unanswered;
  if (answer == TestKind::denied) return Verdict::denied;
  return answer == expected ? Verdict::passed : Verdict::wrong;
}

/// The higher one decides.
int weight(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::passed:
      return 0;
    case Verdict::denied:
      return 1;
    case Verdict::unanswered:
      return 2;
    case Verdict::wrong:
      break;
  }
  return 3;
}

SelfTestReport::Result result_of(Verdict verdict) noexcept {
  if (verdict == Verdict::passed) return SelfTestReport::Result::passed;
  if (verdict == Verdict::wrong) return SelfTestReport::Result::wrong;
  return SelfTestReport::Result::not_tested;
}

std::string reason(const Failure& failure) {
  if (!failure.text.empty()) return failure.text;
  return failure.error ? failure.error.message() : std::string();
}

}  // namespace

std::string SelfTestReport::failure_text() const {
  for (const auto& step : steps) {
    if (step.result != Result::wrong) continue;
    return fmt::format(
        "{} fails the self-test at step '{}': {}; use a server, and a proxy if any, that honors "
        "conditions and reads its own writes",
        server, step.name, step.text);
  }
  return {};
}

SelfTest::Judged SelfTest::judge(SelfTestStep step) const noexcept {
  const auto expected = rule_of(step).expected;
  Judged judged;
  for (const auto& [to, answer] : answers_) {
    if (to != step) continue;
    const auto verdict = verdict_of(answer.kind, expected);
    if (judged.answer != nullptr && weight(verdict) <= weight(judged.verdict)) continue;
    judged = {verdict, &answer};
  }
  return judged;
}

bool SelfTest::has_acquired() const noexcept {
  return judge(SelfTestStep::acquire).verdict == Verdict::passed;
}

Verdict SelfTest::verdict() const noexcept {
  if (!has_acquired()) return judge(SelfTestStep::acquire).verdict;
  auto worst = Verdict::passed;
  for (const auto& rule : kRules) {
    const auto verdict = judge(rule.step).verdict;
    if (weight(verdict) > weight(worst)) worst = verdict;
  }
  return worst;
}

SelfTestReport SelfTest::report(std::string_view server) const {
  SelfTestReport report;
  report.server = server;
  const bool counts = has_acquired();
  for (const auto& rule : kRules) {
    SelfTestReport::Step step;
    step.name = rule.name;
    const bool is_judged = counts || rule.step == SelfTestStep::acquire;
    const auto judged = is_judged ? judge(rule.step) : Judged{};
    step.result = result_of(judged.verdict);
    if (judged.verdict == Verdict::wrong) {
      step.text = rule.wrong;
    } else if (judged.answer != nullptr) {
      step.text = reason(judged.answer->failure);
    }
    report.steps.push_back(std::move(step));
  }
  return report;
}

Failure SelfTest::failure(std::string_view server, error_code wrong) const {
  const auto decided = verdict();
  if (decided == Verdict::wrong) return {wrong, report(server).failure_text()};
  if (decided != Verdict::unanswered) return {};
  for (const auto& [step, answer] : answers_) {
    if (answer.kind == TestKind::unanswered && answer.failure.error) return answer.failure;
  }
  return make_failure(errc::unavailable, fmt::format("{}: no answer to the self-test", server));
}

boost::asio::awaitable<SelfTest> run_self_test(SelfTestRun run) {
  auto test = co_await run();
  if (test.verdict() == Verdict::wrong) test = co_await run();
  co_return test;
}

bool lets_in(const SelfTestResult& result) noexcept {
  if (!result) return false;
  const auto verdict = result->verdict();
  return verdict == Verdict::passed || verdict == Verdict::denied;
}

/// A run under way: whatever ends it, its waiters continue.
class SelfTestGate::Running {
 public:
  explicit Running(State& state) : state_(state) { state_.is_running = true; }
  ~Running() {
    state_.is_running = false;
    for (const auto& waiter : std::exchange(state_.waiting, {})) waiter.set(result);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  SelfTestResult result;

 private:
  State& state_;
};

SelfTestGate::SelfTestGate(Env& env) : state_(std::make_shared<State>(env)) {}

void SelfTestGate::close() noexcept {
  state_->is_open = false;
  ++state_->server;
}

boost::asio::awaitable<SelfTestResult> SelfTestGate::pass(SelfTestRun run, TimePoint deadline) {
  const auto state = state_;
  if (state->is_running) {
    const OneShot<SelfTestResult> told(state->env);
    state->waiting.push_back(told);
    auto result = co_await told.get_until(deadline);
    co_return result.value_or(nullptr);
  }
  Running running(*state);
  const auto server = state->server;
  auto test = co_await run_self_test(std::move(run));
  // The answers of a server that was replaced meanwhile count for nothing.
  if (server != state->server) co_return nullptr;
  running.result = std::make_shared<const SelfTest>(std::move(test));
  if (lets_in(running.result)) state->is_open = true;
  co_return running.result;
}

}  // namespace dlock::inline v0

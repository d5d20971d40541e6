// SPDX-License-Identifier: Apache-2.0
//
// A run that its store records begins only if it still has its lock, and time left.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "dlock/clock.hpp"
#include "dlock/schedule.hpp"
#include "tests/support/scripted_backend.hpp"

namespace dlock::schedule_tests {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// The notes of a store.
class Notes final : public MigrationStore {
 public:
  std::function<void()> on_write;  ///< called once, when the next note is written

  asio::awaitable<RecordAnswer> note(std::string key, TimePoint) override {
    RecordAnswer answer;
    answer.status = RecordStatus::done;
    answer.found = texts_[key];
    co_return answer;
  }
  asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                         std::optional<std::string> to, TimePoint) override {
    RecordAnswer answer;
    auto& text = texts_[key];
    const bool is_expected = text == from.value_or(std::string());
    answer.status = is_expected ? RecordStatus::done : RecordStatus::conflict;
    if (is_expected) text = to.value_or(std::string());
    if (const auto job = std::exchange(on_write, nullptr)) job();
    co_return answer;
  }
  asio::awaitable<Result<milliseconds>> time(TimePoint) override {
    Result<milliseconds> now;
    now.value = milliseconds(1'700'000'000'000);
    co_return now;
  }

 private:
  std::map<std::string, std::string> texts_;
};

class BackendWithNotes final : public tests::ScriptedBackend {
 public:
  BackendWithNotes(tests::Script& script, Notes& notes, Env& env, EventSink& sink)
      : ScriptedBackend(script, env, sink), notes_(notes) {}
  MigrationStore& migration() noexcept override { return notes_; }

 private:
  Notes& notes_;
};

/// A manager of a scripted store with notes, and a schedule on it.
class ScheduleRecording : public ::testing::Test {
 protected:
  ScheduleRecording() {
    script_.capabilities.lease_scope = LeaseScope::none;
    script_.capabilities.guarantee = Guarantee::exclusive;
  }

  /// The error of a run whose store does `job` while it records the run; no error if it ran.
  error_code run_while(std::function<void()> job, milliseconds at_most_for) {
    Schedule schedule(locks_, "job", {.at_most_for = at_most_for});
    notes_.on_write = std::move(job);
    try {
      schedule.run([this](const std::stop_token&) { ++runs_; });
    } catch (const LockError& error) {
      return error.code();
    }
    return {};
  }

  tests::Script script_;
  Notes notes_;
  int runs_ = 0;

 private:
  static ScheduleRecording*& current() {
    static ScheduleRecording* test = nullptr;
    return test;
  }
  LockManager open() {
    static const BackendDescriptor descriptor{
        .name = "scripted",
        .schemes = {"scripted"},
        .address = BackendDescriptor::Address::name,
        .options = {},
        .lease_option = {},
        .create = [](const StoreOptions&, Env& env, EventSink& sink) -> std::unique_ptr<Backend> {
          auto& test = *current();
          return std::make_unique<BackendWithNotes>(test.script_, test.notes_, env, sink);
        }};
    current() = this;
    OpenOptions options;
    options.backends = {&descriptor};
    options.log = [](LogLevel, std::string_view) {};
    return LockManager::open("scripted://store", options);
  }

 protected:
  LockManager locks_ = open();
};

TEST_F(ScheduleRecording, ARunWhoseLockIsLostMeanwhileDoesNotBegin) {
  const auto lose = [this] {
    script_.sink->on_claim_gone(script_.granted.back(), LossReason::removed);
  };
  EXPECT_EQ(run_while(lose, std::chrono::minutes(10)), errc::lock_lost);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(Schedule::last(locks_, "job")->outcome, RunRecord::Outcome::lost);
}

TEST_F(ScheduleRecording, ARunWhoseTimePassesMeanwhileDoesNotBegin) {
  const milliseconds time(20);
  const auto pause = [time] {
    const auto over = BoottimeClock::now() + time;
    while (BoottimeClock::now() < over) std::this_thread::yield();
  };
  EXPECT_EQ(run_while(pause, time), errc::lock_lost);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(Schedule::last(locks_, "job")->outcome, RunRecord::Outcome::lost);
  EXPECT_EQ(script_.release_searches.size(), 1U) << "the lock is free again";
}

TEST_F(ScheduleRecording, ARunThatIsRecordedInTimeBegins) {
  EXPECT_FALSE(run_while([] {}, std::chrono::minutes(10)));
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(Schedule::last(locks_, "job")->outcome, RunRecord::Outcome::succeeded);
}

}  // namespace
}  // namespace dlock::schedule_tests

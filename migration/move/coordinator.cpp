// SPDX-License-Identifier: Apache-2.0
#include "migration/move/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/store/hold.hpp"
#include "dlock/spi/error.hpp"
#include "migration/eligibility.hpp"
#include "migration/move/target_place.hpp"
#include "migration/policy/plan_claims.hpp"
#include "migration/policy/target_guard.hpp"

namespace dlock::core::migration {

Coordinator::Coordinator(std::shared_ptr<Store> source, std::shared_ptr<Store> target, Plan plan,
                         Options options)
    : source_(std::move(source)),
      target_(std::move(target)),
      plan_(std::move(plan)),
      options_(std::move(options)) {}

TimePoint Coordinator::request_deadline(Store& store) const {
  return store.env().now() + store.request_timeout();
}

asio::awaitable<RecordAnswer> Coordinator::read(std::string name) {
  RecordAnswer answer;
  answer.failure = co_await source_->connected();
  if (answer.failure.error) co_return answer;
  answer =
      co_await source_->backend().migration().record(std::move(name), request_deadline(*source_));
  co_return answer;
}

asio::awaitable<StepReport> Coordinator::take(Goal goal, std::string name) {
  const auto self = shared_from_this();
  bool changed = false;
  for (;;) {
    if (locker_.stopped()) co_return report_of(name, Verdict::stopped, "stopped");
    const auto answer = co_await read(name);
    if (answer.status != RecordStatus::done) {
      co_return failure_report(name, answer.status == RecordStatus::failed, source_->name(),
                               answer.failure.error, answer.failure);
    }
    std::optional<Record> record;
    if (answer.found) {
      std::string why;
      record = parse_record(*answer.found, &why);
      if (!record) {
        co_return report_of(name, Verdict::refused,
                            fmt::format("what stands in the lock's place cannot be read: {}", why));
      }
    }
    if (record && record->plan_id != plan_.id) {
      auto passed = co_await pass_left_one(goal, name, *answer.found);
      if (passed && passed->report) co_return std::move(*passed->report);
      if (passed) continue;
    }
    auto decision = decide(goal, record, plan_);
    Task task{name, options_.gate->check(source_->env().wall_clock_ms())};
    if (decision.action != Action::refuse) {
      decision =
          under_gate(goal, std::move(decision), options_.gate->gate(), plan_, options_.is_for_all);
    }
    const bool moved = record && record->state == MoveState::moved;
    const bool goes = decision.action != Action::refuse && decision.action != Action::give_way;
    const bool to_target = goal != Goal::rollback && goes;
    if (to_target && (moved || decision.action == Action::seal)) {
      auto opened = co_await open_target(name, record);
      if (opened) {
        changed = changed || opened->changed;
        if (!opened->report) continue;
        if (!opened->report->record) opened->report->record = record;
        opened->report->changed = changed;
        co_return std::move(*opened->report);
      }
    }
    if (decision.action == Action::nothing || !goes) {
      auto verdict = Verdict::done;
      if (!goes) verdict = decision.action == Action::refuse ? Verdict::refused : Verdict::waiting;
      auto report = report_of(name, verdict, decision.why);
      report.record = record;
      report.changed = changed;
      co_return report;
    }
    auto course = co_await step(decision.action, std::move(task), record);
    changed = changed || course.changed;
    if (!course.report) continue;
    if (!course.report->record) course.report->record = record;
    course.report->changed = changed;
    co_return std::move(*course.report);
  }
}

asio::awaitable<std::optional<Coordinator::Course>> Coordinator::pass_left_one(Goal goal,
                                                                               std::string name,
                                                                               std::string record) {
  std::optional<Course> course;
  const auto left = co_await TargetGuard::of(*source_).is_left_closed(name, record);
  if (!left.value) {
    course.emplace().report =
        failure_report(name, false, source_->name(), left.failure.error, left.failure);
    co_return course;
  }
  if (!*left.value) co_return course;
  course.emplace();
  if (goal == Goal::advance && !options_.is_for_all) {
    co_await TargetGuard::of(*source_).open_left(name, std::move(record));
  } else {
    course->report = report_of(name, Verdict::done, "");
  }
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::step(Action action, Task task,
                                                       std::optional<Record> record) {
  Course course;
  switch (action) {
    case Action::seal:
      course = co_await seal(std::move(task));
      break;
    case Action::close:
      course = co_await change(std::move(task), *record, MoveState::closing);
      break;
    case Action::abort:
      course = co_await change(std::move(task), *record, MoveState::moved);
      break;
    case Action::open:
      if (options_.target_gone) {
        course = co_await open_without_target(std::move(task), *record);
      } else {
        course = co_await open(std::move(task), *record);
      }
      break;
    case Action::nothing:
    case Action::give_way:
    case Action::refuse:
      break;
  }
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::seal(Task task) {
  Course course;
  const auto& name = task.name;
  const auto& capabilities = source_->backend().capabilities();
  // The source's settings may have changed since `start`.
  if (!keeps_records(capabilities)) {
    const auto objected =
        objections({source_->name(), capabilities, {}}, {target_->name(), capabilities, {}});
    course.report = report_of(name, Verdict::refused, fmt::format("{}", fmt::join(objected, "; ")));
    co_return course;
  }
  auto request = request_for(*source_, name);
  request.policy = source_claims(*source_, participant_mark(plan_.name), task.gate);
  auto locked = co_await locker_.lock(source_, std::move(request));
  if (auto learnt = learn_gate(locked.gate, name)) co_return std::move(*learnt);
  if (locked.error == errc::moving) {  // sealed by another process, or with the grant
    course.changed = !task.gate->seal.empty();
    co_return course;
  }
  if (locked.error) {
    course.report = co_await locker_.not_locked(source_, name, std::move(locked));
    co_return course;
  }
  const auto& hold = HandleAccess::hold(locked.handle);
  const auto claim = hold->claim();
  const auto token = locked.handle.token();
  if (!claim) co_return course;  // lost already
  if (!token) {
    course.report = report_of(name, Verdict::refused,
                              fmt::format("the store '{}' grants no tokens", source_->name()));
    co_return course;
  }
  const auto record = moved_record(plan_, *token, source_->env().wall_clock_ms());
  const auto answer = co_await source_->backend().migration().seal(claim, to_text(record),
                                                                   request_deadline(*source_));
  // Any other outcome releases the handle, so that a delayed copy of the request fails.
  if (answer.status == RecordStatus::done) source_->retire(*hold);
  course = after(answer, *source_, name);
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::change(Task task, Record from, MoveState to) {
  const auto next = next_record(from, to, source_->env().wall_clock_ms());
  const auto answer = co_await set_record(task, to_text(from), to_text(next), 0);
  co_return after(answer, *source_, task.name);
}

asio::awaitable<RecordAnswer> Coordinator::set_record(Task task, std::string from,
                                                      std::optional<std::string> to,
                                                      std::uint64_t min_token) {
  const auto deadline = request_deadline(*source_);
  co_return co_await source_->backend().migration().set_record_under(
      std::move(task.gate), std::move(task.name), std::move(from), std::move(to), min_token,
      deadline);
}

std::optional<Coordinator::Course> Coordinator::learn_gate(const std::optional<std::string>& text,
                                                           const std::string& name) const {
  if (!text) return std::nullopt;
  Course course;
  std::string why;
  if (!options_.gate->learn(*text, why)) {
    course.report =
        report_of(name, Verdict::refused, fmt::format("the plan's gate cannot be read: {}", why));
  }
  return course;
}

asio::awaitable<Coordinator::Course> Coordinator::open(Task task, Record closing) {
  Course course;
  const auto& name = task.name;
  auto locked = co_await locker_.lock(target_, target_request(name, closing));
  if (locked.error == errc::moving) {
    co_return co_await open_from_closed(std::move(task), std::move(closing), locked.record);
  }
  if (locked.error) {
    course.report = co_await locker_.not_locked(target_, name, std::move(locked));
    co_return course;
  }
  const auto drained = locked.handle.token().value_or(closing.floor);
  const bool lossy = plan_.lossy_target || !keeps_records(target_->backend().capabilities());
  if (lossy) {
    // A holder that the target has forgotten may use the lock for one more lease.
    const bool slept = co_await locker_.pause(source_->env(), closing.max_lease);
    if (!slept) co_return course;
  }
  if (!lossy) {
    // Another command may have taken the rollback back and finished the plan while this one waited.
    // Then the target must stay open. While this command holds the target, no plan can finish.
    const auto now_there = co_await read(name);
    if (now_there.status != RecordStatus::done) co_return after(now_there, *source_, name);
    if (now_there.found != to_text(closing)) co_return course;
    course = co_await close_target(name, closing, HandleAccess::hold(locked.handle), drained);
    if (course.report || !course.changed) co_return course;
  }
  course = co_await write_open(std::move(task), std::move(closing), drained);
  co_return course;
}

// A lock whose target is unreachable, or taken, could not be acquired in any store. A closed place
// is opened after the seal in the source: before it, a client of the target alone could lock there.
asio::awaitable<std::optional<Coordinator::Course>> Coordinator::open_target(
    std::string name, std::optional<Record> record) {
  std::optional<Course> course;
  const auto reached = co_await target_->connected();
  if (reached.error) {
    course.emplace().report = failure_report(name, false, target_->name(), reached.error, reached);
    co_return course;
  }
  auto& backend = target_->backend();
  if (!backend.capabilities().can_seal) co_return course;
  const auto found = co_await backend.migration().record(name, request_deadline(*target_));
  if (found.status != RecordStatus::done) {
    course = after(found, *target_, name);
    co_return course;
  }
  const auto there = place_in(target_->name(), found.found, plan_.from);
  if (there.kind == TargetPlace::Kind::open) co_return course;
  if (there.kind == TargetPlace::Kind::foreign) {
    course = co_await open_left_place(name, record, *found.found, there);
    co_return course;
  }
  if (!record) co_return course;
  course.emplace();
  if (there.record->gen >= record->gen) {
    // A younger record of the source must exist by now.
    const auto now_there = co_await read(name);
    if (now_there.status == RecordStatus::done && now_there.found == to_text(*record)) {
      course->report = report_of(
          name, Verdict::refused,
          fmt::format("the record in the store '{}' is older than what a later rollback left in "
                      "'{}': '{}' was restored from an old copy; stop its users, then bring its "
                      "data back",
                      source_->name(), target_->name(), source_->name()));
    }
    co_return course;
  }
  const auto answer = co_await backend.migration().set_record(
      name, *found.found, std::nullopt, record->floor, request_deadline(*target_));
  course = after(answer, *target_, name);
  co_return course;
}

// Finished plans have left the record: the lock was at home in the target before, and returns from
// a third store.
asio::awaitable<std::optional<Coordinator::Course>> Coordinator::open_left_place(
    std::string name, std::optional<Record> record, std::string text, TargetPlace there) {
  std::optional<Course> course;
  const auto left = co_await TargetGuard::of(*target_).is_left_closed(name, text);
  if (!left.value) {
    course.emplace().report =
        failure_report(name, false, target_->name(), left.failure.error, left.failure);
  } else if (!*left.value) {
    course.emplace().report = report_of(name, Verdict::refused, there.why);
  } else if (record) {
    course.emplace().changed = co_await TargetGuard::of(*target_).open_left(name, std::move(text));
  }
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::close_target(std::string name, Record closing,
                                                               std::shared_ptr<Hold> hold,
                                                               std::uint64_t token) {
  const auto claim = hold->claim();
  if (!claim) co_return Course();  // lost already
  const auto record = closed_record(plan_, closing, token, target_->env().wall_clock_ms());
  const auto answer = co_await target_->backend().migration().seal(claim, to_text(record),
                                                                   request_deadline(*target_));
  if (answer.status == RecordStatus::done) target_->retire(*hold);
  co_return after(answer, *target_, name);
}

// An earlier step has drained and closed the target. The record is written again for this rollback,
// so that a delayed command or client cannot open the place for the earlier flip.
asio::awaitable<Coordinator::Course> Coordinator::open_from_closed(Task task, Record closing,
                                                                   std::string text) {
  Course course;
  const auto& name = task.name;
  const auto there = parse_record(text);
  if (!there || !is_closed(*there, plan_.from)) {
    course.report = report_of(
        name, Verdict::refused,
        fmt::format("another record stands in its place in the store '{}'", target_->name()));
    co_return course;
  }
  const auto drained = std::max(closing.floor, there->floor);
  if (there->gen < closing.gen) {
    const auto anew = closed_record(plan_, closing, drained, target_->env().wall_clock_ms());
    const auto answer = co_await target_->backend().migration().set_record(
        name, text, to_text(anew), 0, request_deadline(*target_));
    course = after(answer, *target_, name);
    if (course.report || !course.changed) co_return course;
  }
  course = co_await write_open(std::move(task), std::move(closing), drained);
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::open_without_target(Task task, Record closing) {
  Course course;
  if (!plan_.leased_target) {
    course.report = report_of(
        task.name, Verdict::refused,
        fmt::format("the locks of the store '{}' have no lease: who holds one believes it "
                    "for ever, whatever became of the store; end the holders, bring the "
                    "store back and roll back without --target-gone",
                    plan_.to));
    co_return course;
  }
  const auto above = blind_floor(closing.floor, source_->env().wall_clock_ms());
  if (!above) {
    course.report = report_of(task.name, Verdict::refused,
                              "no token is left below 2^53 to be above those of the target");
    co_return course;
  }
  const bool slept = co_await locker_.pause(source_->env(), closing.max_lease);
  if (!slept) co_return course;
  course = co_await write_open(std::move(task), std::move(closing), *above);
  co_return course;
}

asio::awaitable<Coordinator::Course> Coordinator::write_open(Task task, Record closing,
                                                             std::uint64_t above) {
  const auto answer = co_await set_record(task, to_text(closing), std::nullopt, above);
  co_return after(answer, *source_, task.name);
}

Coordinator::Course Coordinator::after(const RecordAnswer& answer, const Store& store,
                                       const std::string& name) const {
  Course course;
  if (auto learnt = learn_gate(answer.gate, name)) return std::move(*learnt);
  switch (answer.status) {
    case RecordStatus::done:
      course.changed = true;
      break;
    case RecordStatus::conflict:  // another process was faster, or the lock was lost
    case RecordStatus::unknown:   // the next read shows the result
      break;
    case RecordStatus::unavailable:
    case RecordStatus::failed:
      course.report = failure_report(name, answer.status == RecordStatus::failed, store.name(),
                                     answer.failure.error, answer.failure);
      break;
  }
  return course;
}

Acquisition::Request Coordinator::request_for(Store& store, const std::string& name) const {
  const auto& settings = store.setup().settings;
  Acquisition::Request request;
  request.name = name;
  request.limits.once = options_.deadline <= store.env().now();
  request.limits.deadline = options_.deadline;
  request.limits.connect_timeout = settings.connect_timeout;
  request.limits.retry = settings.retry;
  return request;
}

Acquisition::Request Coordinator::target_request(const std::string& name,
                                                 const Record& record) const {
  auto request = request_for(*target_, name);
  request.min_token = record.floor;
  if (record.max_lease.count() > 0) request.max_lease = record.max_lease;
  request.policy = target_claims(*target_, {plan_.name, plan_.id, plan_.from});
  return request;
}

}  // namespace dlock::core::migration

// SPDX-License-Identifier: Apache-2.0
#include "migration/move/survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migration/gate_note.hpp"
#include "migration/move/plan_coordinator.hpp"
#include "migration/policy/target_guard.hpp"

namespace dlock::core::migration {
namespace {

struct Counts {
  std::size_t open = 0;
  std::size_t moved = 0;
  std::size_t closing = 0;
};

Counts count(const std::vector<NameStatus>& names) {
  Counts counts;
  for (const auto& name : names) {
    if (!name.record) {
      ++counts.open;
    } else if (name.record->state == MoveState::moved) {
      ++counts.moved;
    } else if (name.record->state == MoveState::closing) {
      ++counts.closing;
    }
  }
  return counts;
}

bool is_held(const std::optional<LockStatus>& status) { return status && status->held; }

std::string holder_of(const LockStatus& status) {
  return status.owner ? describe(*status.owner) : std::string("somebody");
}

/// Returns place_in(). The record of a finished plan counts as open: the next client that acquires
/// the lock removes it.
asio::awaitable<TargetPlace> place_of(std::shared_ptr<Store> target, std::string name,
                                      std::optional<std::string> text, std::string source) {
  auto place = place_in(target->name(), text, source);
  if (place.kind != TargetPlace::Kind::foreign) co_return place;
  const auto left =
      co_await TargetGuard::of(*target).is_left_closed(std::move(name), std::move(*text));
  if (left.value.value_or(false)) place = TargetPlace();
  co_return place;
}

asio::awaitable<void> look_at(std::shared_ptr<Store> from, std::shared_ptr<Store> to,
                              bool target_answers, NameStatus& status) {
  auto deadline = from->env().now() + from->request_timeout();
  const auto record = co_await from->backend().migration().record(status.name, deadline);
  status.known = record.status == RecordStatus::done;
  if (record.found) {
    const auto left = co_await TargetGuard::of(*from).is_left_closed(status.name, *record.found);
    // The next client that acquires the lock removes the record of a finished plan.
    if (!left.value.value_or(false)) {
      status.record = parse_record(*record.found, &status.unreadable);
    }
  }
  auto here = co_await from->backend().inspect(status.name, deadline);
  status.in_source = std::move(here.value);
  if (!target_answers) co_return;
  deadline = to->env().now() + to->request_timeout();
  auto there = co_await to->backend().inspect(status.name, deadline);
  status.in_target = std::move(there.value);
  if (!to->backend().capabilities().can_seal) co_return;
  deadline = to->env().now() + to->request_timeout();
  const auto place = co_await to->backend().migration().record(status.name, deadline);
  if (place.status == RecordStatus::done) {
    status.place = co_await place_of(to, status.name, place.found, from->name());
  }
}

/// Reads the gate and the names of the plan's locks.
asio::awaitable<Failure> see(std::shared_ptr<Store> from, std::shared_ptr<Store> to,
                             bool target_answers, PlanStatus& status,
                             std::vector<std::string>& names) {
  GateNote note(from, status.plan.name);
  auto look = co_await note.read();
  if (look.failure.error) co_return look.failure;
  status.gate = std::move(look.gate);
  auto seen = co_await look_at_source(from, status.plan);
  if (seen.failure.error) co_return seen.failure;
  names = std::move(seen.names);
  if (!target_answers) co_return Failure{};
  auto prefix = status.plan.prefix();
  const auto there = co_await to->backend().list(std::move(prefix), to->env().now() + kListing);
  // A target that cannot list adds no names.
  for (const auto& lock : there.value.value_or(std::vector<LockStatus>())) {
    if (lock.held && status.plan.has(lock.name)) names.push_back(lock.name);
  }
  names = sorted(std::move(names));
  co_return Failure{};
}

std::string next_of_turned(const PlanStatus& status, const Counts& counts) {
  const auto& plan = status.plan;
  if (counts.open + counts.closing > 0) {
    return fmt::format(
        "not in '{4}' yet: {0} of {1}, held or waited for in '{2}' from before, or on the way "
        "back; "
        "`dlock migrate advance {3} --all` moves each when its holder leaves",
        counts.open + counts.closing, status.names.size(), plan.from, plan.name, plan.to);
  }
  return fmt::format(
      "all are in '{0}'; try it out, and go back with `dlock migrate rollback {1} --all`, or make "
      "it "
      "final with `dlock migrate finish {1} --all`",
      plan.to, plan.name);
}

std::string next_of_open(const PlanStatus& status, const Counts& counts) {
  const auto& plan = status.plan;
  if (counts.closing > 0) {
    return fmt::format(
        "on the way back, waiting for holders in '{2}' to leave: {0} of {1}; go on with "
        "`dlock migrate rollback {3} --all`, or take it back with `dlock migrate advance {3} "
        "--all`",
        counts.closing, status.names.size(), plan.to, plan.name);
  }
  if (counts.moved > 0) {
    return fmt::format(
        "in '{2}': {0} of {1}; `dlock migrate advance {3} --all` moves all, those made later too, "
        "and `dlock migrate rollback {3} --all` brings these back",
        counts.moved, status.names.size(), plan.to, plan.name);
  }
  return fmt::format(
      "all are in '{}'; `dlock migrate advance {} --all` moves them, each when its "
      "holder leaves, and those made later",
      plan.from, plan.name);
}

std::string next_of_gate(const PlanStatus& status, const Counts& counts) {
  const auto& plan = status.plan;
  if (!status.gate) return start_broken_off(plan.name);
  switch (status.gate->state) {
    case GateState::open:
      return next_of_open(status, counts);
    case GateState::turned:
      return next_of_turned(status, counts);
    case GateState::final_:
      return fmt::format(
          "the certificate: `dlock migrate finish {} --all` was broken off; run it "
          "again",
          plan.name);
    case GateState::ended:
      break;
  }
  return fmt::format(
      "it is being withdrawn: `dlock migrate rollback {} --all --withdraw` ends that", plan.name);
}

/// Returns the alarm for a moved lock whose place in the target is not open.
std::optional<std::string> alarm_of_place(const NameStatus& name, const Plan& plan) {
  const auto& place = name.place;
  if (place.kind == TargetPlace::Kind::open) return std::nullopt;
  if (place.kind == TargetPlace::Kind::foreign) {
    return fmt::format("{}; {}", place.why,
                       name.record ? "nobody can lock it there"
                                   : fmt::format("it cannot be moved to '{}'", plan.to));
  }
  if (!name.record || name.record->state == MoveState::closing) return std::nullopt;
  // The next program that acquires the lock opens it, and so does `finish`.
  if (place.record->gen < name.record->gen) return std::nullopt;
  return fmt::format(
      "its place in '{0}' was closed by a later rollback than the record in '{1}' knows of: "
      "nobody can lock it; '{1}' was restored from an old copy; stop its users, then bring its "
      "data back",
      plan.to, plan.from);
}

}  // namespace

std::string state_text(const std::optional<Record>& record) {
  return record ? to_string(record->state) : "OPEN";
}

std::vector<std::string> alarms_of(const NameStatus& name, const Plan& plan, bool at_home) {
  std::vector<std::string> alarms;
  if (!name.known) {
    alarms.push_back(fmt::format("the store '{}' did not answer", plan.from));
  } else if (!name.unreadable.empty()) {
    alarms.push_back(
        fmt::format("what stands in the lock's place cannot be read: {}", name.unreadable));
  } else if (!name.record && is_held(name.in_target) && !at_home) {
    alarms.push_back(
        fmt::format("{} holds it in '{}', though it is not moved: a client that knows "
                    "'{}' alone",
                    holder_of(*name.in_target), plan.to, plan.to));
  } else if (name.record && (name.record->plan != plan.name || name.record->plan_id != plan.id)) {
    alarms.push_back(fmt::format("the record is of plan '{}'", name.record->plan));
  } else if (auto closed = alarm_of_place(name, plan)) {
    alarms.push_back(std::move(*closed));
  }
  return alarms;
}

std::string next_step(const PlanStatus& status) {
  const auto& plan = status.plan;
  if (status.finished) {
    return fmt::format(
        "nothing: it is finished; write `store: {}` instead of `migrate`, program by program; "
        "'{}' can be taken out of the configurations, and must be kept until none names it",
        plan.to, plan.from);
  }
  return next_of_gate(status, count(status.names));
}

asio::awaitable<PlanStatus> survey(std::shared_ptr<Store> from, std::shared_ptr<Store> to,
                                   Plan plan) {
  PlanStatus status;
  status.plan = std::move(plan);
  const auto source = co_await from->connected();
  const auto target = co_await to->connected();
  if (source.error) {
    status.alarms.push_back(
        fmt::format("the store '{}' cannot be reached: {}", from->name(), source.error.message()));
    co_return status;
  }
  if (target.error) {
    status.alarms.push_back(
        fmt::format("the store '{}' cannot be reached: {}; locks that are moved "
                    "there cannot be acquired",
                    to->name(), target.error.message()));
  }
  const bool target_answers = !target.error;
  std::vector<std::string> names;
  const auto failure = co_await see(from, to, target_answers, status, names);
  if (failure.error) {
    status.alarms.push_back(failure.text);
    co_return status;
  }
  const bool at_home = status.gate && status.gate->state == GateState::final_;
  for (const auto& name : names) {
    NameStatus one;
    one.name = name;
    co_await look_at(from, to, target_answers, one);
    one.alarms = alarms_of(one, status.plan, at_home);
    status.names.push_back(std::move(one));
  }
  status.next = next_step(status);
  co_return status;
}

asio::awaitable<Result<std::vector<std::string>>> taken_places(std::shared_ptr<Store> target,
                                                               std::string source,
                                                               std::vector<std::string> names) {
  Result<std::vector<std::string>> result;
  result.failure = co_await target->connected();
  if (result.failure.error) co_return result;
  std::vector<std::string> taken;
  const bool has_records = target->backend().capabilities().can_seal;
  for (std::size_t i = 0; has_records && i < names.size(); ++i) {
    const auto deadline = target->env().now() + target->request_timeout();
    const auto found = co_await target->backend().migration().record(names[i], deadline);
    if (found.status != RecordStatus::done) {
      result.failure = found.failure;
      co_return result;
    }
    const auto place = co_await place_of(target, names[i], found.found, source);
    if (place.kind != TargetPlace::Kind::foreign) continue;
    taken.push_back(fmt::format("'{}': {}", names[i], place.why));
  }
  result.value = std::move(taken);
  co_return result;
}

}  // namespace dlock::core::migration

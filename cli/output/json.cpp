// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.hpp"

#include <boost/json.hpp>

#include "cli/output/json_values.hpp"
#include "cli/output/last_run.hpp"
#include "cli/output/semaphore_output.hpp"

namespace dlock::cli {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

json::object reader_object(const SharedHolder& reader) {
  auto object = owner_object(reader.owner);
  object["token"] = or_null(reader.token);
  object["since_ms"] = ms_or_null(reader.held_for);
  object["remaining_ms"] = ms_or_null(reader.remaining);
  object["broken"] = break_value(reader.broken);
  return object;
}

json::object status_object(const LockStatus& status) {
  json::array readers;
  for (const auto& reader : status.readers) readers.push_back(reader_object(reader));
  json::array waiting;
  for (const auto& owner : status.waiting) waiting.push_back(owner_object(owner));
  json::array notes;
  for (const auto& note : status.notes) notes.push_back(utf8(note));
  return {{"name", utf8(status.name)},
          {"held", status.held},
          {"sealed", status.sealed},
          {"token", or_null(status.token)},
          {"owner", status.owner ? json::value(owner_object(*status.owner)) : json::value(nullptr)},
          {"since_ms", ms_or_null(status.held_for)},
          {"remaining_ms", ms_or_null(status.remaining)},
          {"waiting", std::move(waiting)},
          {"notes", std::move(notes)},
          {"mode", status.held ? json::value(to_string(status.mode)) : json::value(nullptr)},
          {"readers", std::move(readers)},
          {"broken", break_value(status.broken)}};
}

json::array self_test_values(const std::vector<SelfTestReport>& reports) {
  json::array servers;
  for (const auto& report : reports) {
    json::array steps;
    for (const auto& step : report.steps) {
      steps.push_back(json::object{
          {"step", step.name}, {"result", to_string(step.result)}, {"reason", or_null(step.text)}});
    }
    servers.push_back(json::object{{"server", utf8(report.server)}, {"steps", std::move(steps)}});
  }
  return servers;
}

json::object finding_object(const StoreFinding& finding) {
  const StoreReport& report = finding.report;
  json::object object{{"store", report.name},
                      {"backend", report.backend},
                      {"reached", report.reached},
                      {"connect_ms", finding.took.count()},
                      {"error", report.error ? json::value(report.error.message()) : json::value()},
                      {"message", or_null(report.message)}};
  if (!report.capabilities) {
    object["guarantee"] = nullptr;
    return object;
  }
  const Capabilities& can = *report.capabilities;
  json::array assumptions;
  for (const auto& [name, meaning] : can.assumptions) {
    assumptions.push_back(json::object{{"name", name}, {"meaning", meaning}});
  }
  json::array shortfalls;
  for (const auto& [reason, remedy] : can.shortfalls) {
    shortfalls.push_back(json::object{{"reason", utf8(reason)}, {"remedy", utf8(remedy)}});
  }
  json::array notes;
  for (const auto& note : can.notes) notes.push_back(utf8(note));
  object["guarantee"] = to_string(can.guarantee);
  object["assumptions"] = std::move(assumptions);
  object["shortfalls"] = std::move(shortfalls);
  object["fair"] = can.fair;
  object["token"] = to_string(can.token);
  object["wake_up"] = to_string(can.wake_up);
  object["lease_scope"] = to_string(can.lease_scope);
  object["lease_ms"] =
      can.lease_scope == LeaseScope::none ? json::value(nullptr) : json::value(can.lease.count());
  json::array losses;
  for (const auto& [reason, remedy] : can.record_losses) {
    losses.push_back(json::object{{"reason", utf8(reason)}, {"remedy", utf8(remedy)}});
  }
  object["migration"] = json::object{{"can_raise", can.can_raise},
                                     {"can_seal", can.can_seal},
                                     {"record_losses", std::move(losses)}};
  object["notes"] = std::move(notes);
  object["shared_mode"] = can.shared_mode;
  object["can_tell_contention"] = can.can_tell_contention;
  object["can_bound_queue"] = can.can_bound_queue;
  object["can_head_start"] = can.can_head_start;
  object["can_ask"] = can.can_ask;
  object["can_adopt"] = can.can_adopt;
  object["semaphores"] = can.permits;
  object["self_test"] = self_test_values(finding.self_tests);
  return object;
}

template <class Items, class ToObject>
std::string list_of(const Items& items, ToObject to_object) {
  json::array array;
  for (const auto& item : items) array.push_back(to_object(item));
  return json::serialize(array);
}

}  // namespace

std::string to_json(const HoldEvent& event) {
  json::object object{{"event", to_string(event.state)},
                      {"name", event.name},
                      {"token", or_null(event.token)},
                      {"store", event.store}};
  if (event.state == HandleState::held || event.state == HandleState::suspect) {
    object["remaining_ms"] = ms_or_null(event.remaining);
  }
  if (event.state == HandleState::lost) object["reason"] = to_string(event.reason);
  if (!event.broken_by.empty()) object["broken_by"] = utf8(event.broken_by);
  object["sequencer"] =
      event.sequencer ? json::value(event.sequencer->to_string()) : json::value(nullptr);
  if (event.permits != 0) object["permits"] = event.permits;
  return json::serialize(object);
}

std::string to_json(const RunEvent& event) {
  const bool has_reason = event.reason != LossReason::none;
  return json::serialize(json::object{
      {"event", event.event},
      {"name", event.name},
      {"token", or_null(event.token)},
      {"remaining_ms", ms_or_null(event.remaining)},
      {"margin_ms", ms_or_null(event.margin)},
      {"reason", has_reason ? json::value(to_string(event.reason)) : json::value(nullptr)},
      {"broken_by", or_null(event.broken_by)}});
}

json::value owner_value(const Owner& owner) { return owner_object(owner); }

std::string to_json(const LockStatus& status, const std::optional<RunRecord>& last_run,
                    const std::optional<SemaphoreStatus>& semaphore) {
  auto object = status_object(status);
  object["last_run"] = run_value(last_run);
  object["semaphore"] = nullptr;
  if (semaphore) object["semaphore"] = semaphore_object(*semaphore);
  return json::serialize(object);
}

std::string to_json(const std::vector<LockStatus>& locks,
                    const std::vector<SemaphoreStatus>& semaphores) {
  json::array array;
  for (const auto& lock : locks) {
    auto object = status_object(lock);
    object["kind"] = "lock";
    array.push_back(std::move(object));
  }
  for (const auto& semaphore : semaphores) array.push_back(listed_semaphore(semaphore));
  return json::serialize(array);
}

std::string to_json(const BrokenLock& broken) {
  json::object object{{"event", broken.is_free ? "broken" : "marked"},
                      {"name", broken.name},
                      {"token", broken.token}};
  if (broken.of_semaphore) object["kind"] = "semaphore";
  if (broken.at_once) object["holder_may_work_ms"] = ms_or_null(broken.within);
  if (!broken.is_free) object["free_within_ms"] = ms_or_null(broken.within);
  return json::serialize(object);
}

std::string to_json(const AskedLock& asked) {
  return json::serialize(json::object{{"event", asked.event},
                                      {"name", asked.name},
                                      {"token", or_null(asked.token)},
                                      {"heard", or_null(asked.heard)}});
}

std::string to_json(const std::vector<StoreFinding>& findings) {
  return list_of(findings, finding_object);
}

}  // namespace dlock::cli

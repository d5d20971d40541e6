// SPDX-License-Identifier: Apache-2.0
#include "cli/output/text.hpp"

#include "cli/output/last_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dlock/duration.hpp"
#include "dlock/lock_status.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::printable;

namespace {

using std::chrono::milliseconds;

std::string readers_of(const LockStatus& status) {
  const auto count = status.readers.size();
  return count == 1 ? std::string("a reader") : fmt::format("{} readers", count);
}

std::string words_for(const SharedHolder& reader) {
  auto text = who(reader.owner);
  if (reader.held_for) text += fmt::format(", for {}", rounded(*reader.held_for));
  if (reader.token) text += fmt::format(", token {}", *reader.token);
  if (reader.remaining) text += fmt::format(", lease left {}", rounded(*reader.remaining));
  if (reader.broken) text += ", " + break_text(*reader.broken);
  return text;
}

std::string token_of(const LockStatus& status) {
  return status.token ? fmt::format("{}", *status.token) : "-";
}

std::string indented(std::string_view label, std::string_view text) {
  return fmt::format("\n  {:<12}{}", label, printable(text));
}

using Row = std::array<std::string, 6>;

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row.back();
  }
  return text;
}

std::vector<std::string> migration_lines(const Capabilities& can) {
  const bool leaves = can.can_seal && can.record_losses.empty();
  std::vector<std::string> lines;
  if (can.can_raise)
    lines.emplace_back(leaves ? "locks may move here and away" : "locks may move here");
  if (!can.can_raise) lines.emplace_back("locks can neither move here nor away");
  if (!can.can_seal) return lines;
  for (const auto& [reason, remedy] : can.record_losses) {
    lines.push_back(fmt::format("a record may be lost: {}; to change that: {}", reason, remedy));
  }
  return lines;
}

/// What its holders and its waiters can have beside the lock.
std::string extras_of(const Capabilities& can) {
  std::string text;
  const auto add = [&text](bool has, std::string_view what) {
    if (has) text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  };
  add(can.can_tell_contention, "tells a holder that somebody waits");
  add(can.can_ask, "asks a holder for its lock");
  add(can.can_adopt, "gives a grant to another process");
  add(can.can_bound_queue, "counts who waits (max_queue)");
  add(can.can_head_start, "lets waiters pass others (head_start)");
  return text;
}

/// The steps that have passed on one line, each other step on its own.
std::string self_test_lines(const SelfTestReport& report) {
  std::string passed;
  std::string others;
  for (const auto& step : report.steps) {
    if (step.result == SelfTestReport::Result::passed) {
      passed += fmt::format("{}{}", passed.empty() ? "" : ", ", step.name);
      continue;
    }
    const bool is_wrong = step.result == SelfTestReport::Result::wrong;
    others += indented(
        "self-test", fmt::format("{}: {}: {}{}{}", report.server, is_wrong ? "WRONG" : "not tested",
                                 step.name, step.text.empty() ? "" : ": ", step.text));
  }
  if (passed.empty()) return others;
  return indented("self-test", fmt::format("{}: passed: {}", report.server, passed)) + others;
}

std::string finding_text(const StoreFinding& finding) {
  const StoreReport& report = finding.report;
  if (report.backend.empty()) {
    return fmt::format("{}: cannot be used: {}", report.name, printable(report.message));
  }
  if (!report.capabilities) {
    return fmt::format("{} ({}): not reached after {} ms: {}{}", report.name, report.backend,
                       finding.took.count(), report.error.message(),
                       report.message.empty() ? "" : ": " + printable(report.message));
  }
  const Capabilities& can = *report.capabilities;
  std::string text =
      fmt::format("{} ({}): reached in {} ms", report.name, report.backend, finding.took.count());
  text += indented(
      "promises",
      fmt::format("{}{}, tokens {}, wakes waiters by {}", to_string(can.guarantee),
                  std::string(can.fair ? ", fair" : "") + (can.shared_mode ? ", shared mode" : "") +
                      (can.permits ? ", semaphores" : ""),
                  to_string(can.token), to_string(can.wake_up)));
  text += indented("lease", can.lease_scope == LeaseScope::none
                                ? std::string("none: a dead holder's lock is free at once")
                                : fmt::format("{} per {}", format_duration(can.lease),
                                              to_string(can.lease_scope)));
  if (const auto extras = extras_of(can); !extras.empty()) text += indented("also", extras);
  for (const auto& [name, meaning] : can.assumptions) {
    text += indented("assuming", fmt::format("{}: {}", name, meaning));
  }
  for (const auto& [reason, remedy] : can.shortfalls) {
    text += indented("not more", fmt::format("{}; to change that: {}", reason, remedy));
  }
  for (const auto& line : migration_lines(can)) text += indented("migration", line);
  for (const auto& note : can.notes) text += indented("server", note);
  for (const auto& tested : finding.self_tests) text += self_test_lines(tested);
  if (report.error) {
    text += indented("REFUSED", report.message.empty() ? report.error.message() : report.message);
  }
  return text;
}

}  // namespace

std::string rounded(milliseconds duration) {
  if (duration >= std::chrono::seconds(10)) {
    return format_duration(std::chrono::floor<std::chrono::seconds>(duration));
  }
  return format_duration(duration);
}

std::string explanation(const error_code& error, const Diagnostics& details) {
  std::string subject = details.lock.empty() ? details.store : details.lock;
  if (!details.lock.empty() && !details.store.empty() && details.store != "default") {
    subject += fmt::format(" (store '{}')", details.store);
  }
  return fmt::format("{}{}{}{}{}", subject, subject.empty() ? "" : ": ", error.message(),
                     details.server_text.empty() ? "" : ": ", details.server_text);
}

std::string who(const Owner& owner) {
  if (owner.host.empty() && owner.app.empty()) {
    return owner.id.empty() ? "somebody" : fmt::format("an unknown client ({})", owner.id);
  }
  std::string text = owner.app.empty() ? "a process" : owner.app;
  if (owner.pid != 0) text += fmt::format(" ({})", pid_words(owner));
  if (!owner.host.empty()) text += fmt::format(" on {}", owner.host);
  return text;
}

std::string break_text(const Break& mark) {
  auto text = fmt::format("broken by {} at {}", who(mark.by), utc(mark.at));
  if (!mark.reason.empty()) text += ": " + mark.reason;
  return text;
}

std::string holder_words(const LockStatus& status) {
  return status.mode == Mode::shared ? readers_of(status) : who(status.owner.value_or(Owner{}));
}

std::string to_text(const LockStatus& status, const std::optional<RunRecord>& last_run) {
  std::string text;
  if (!status.held) {
    text = fmt::format("{}: {}", printable(status.name), status.sealed ? "sealed" : "free");
  } else if (status.mode == Mode::shared) {
    text = printable(fmt::format("{}: held by {}", status.name, readers_of(status)));
    for (const auto& reader : status.readers) text += indented("reader", words_for(reader));
  } else {
    text =
        printable(fmt::format("{}: held by {}", status.name, who(status.owner.value_or(Owner{}))));
    if (status.held_for) text += indented("for", rounded(*status.held_for));
    if (status.token) text += indented("token", token_of(status));
    if (status.broken) text += indented("broken", break_text(*status.broken).substr(7));
    if (status.remaining) {
      text += indented(status.broken ? "free within" : "lease left", rounded(*status.remaining));
    }
  }
  for (const auto& owner : status.waiting) text += indented("waiting", who(owner));
  for (const auto& note : status.notes) text += indented("note", note);
  if (!last_run) return text;
  text += indented(
      "last run", fmt::format("{} by {}", utc(last_run->started), printable(who(last_run->owner))));
  text += indented("went", how_it_went(*last_run));
  text += indented("next run", fmt::format("{} or later", utc(last_run->next_possible())));
  return text;
}

namespace {

std::string to_text(const std::vector<SemaphoreStatus>& all) {
  std::vector<Row> rows{{"SEMAPHORE", "PERMITS", "HELD", "FREE", "HOLDERS", "WAITING"}};
  for (const auto& status : all) {
    rows.push_back(
        {printable(status.name), status.limit ? fmt::format("{}", *status.limit) : std::string("-"),
         fmt::format("{}", status.held()), fmt::format("{}", status.free()),
         fmt::format("{}", status.holders.size()), fmt::format("{}", status.waiting.size())});
  }
  return table(rows);
}

}  // namespace

std::string to_text(const std::vector<LockStatus>& locks,
                    const std::vector<SemaphoreStatus>& semaphores) {
  std::vector<Row> rows{{"NAME", "HELD BY", "FOR", "TOKEN", "LEASE LEFT", "WAITING"}};
  for (const auto& status : locks) {
    rows.push_back({printable(status.name),
                    status.held     ? printable(holder_words(status))
                    : status.sealed ? "(sealed)"
                                    : "(free)",
                    status.held_for ? rounded(*status.held_for) : "-", token_of(status),
                    status.remaining ? rounded(*status.remaining) : "-",
                    fmt::format("{}", status.waiting.size())});
  }
  if (semaphores.empty()) return table(rows);
  return table(rows) + "\n\n" + to_text(semaphores);
}

std::string to_text(const std::vector<StoreFinding>& findings) {
  std::string text;
  for (const auto& finding : findings) {
    if (!text.empty()) text += "\n\n";
    text += finding_text(finding);
  }
  return text;
}

}  // namespace dlock::cli

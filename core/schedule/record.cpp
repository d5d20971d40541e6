// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/record.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "dlock/lock_status.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using Outcome = RunRecord::Outcome;

constexpr std::string_view kRunVersion = "dlock-run1\n";
constexpr std::string_view kRunStamp = "dlock-run";
constexpr unsigned kRunFormat = 1;
constexpr std::int64_t kLatest = 253'402'300'800'000;  // the year 10000, in ms
constexpr std::array kOutcomes = {Outcome::running, Outcome::succeeded, Outcome::failed,
                                  Outcome::overran, Outcome::lost};

using Fields = std::map<std::string_view, std::string_view>;

/// For values from outside: no value may contain the end of a line.
std::string one_line(std::string text) {
  for (auto& c : text) {
    if (c == '\n' || c == '\r' || c == '\0') c = ' ';
  }
  return text;
}

std::optional<Fields> fields_of(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const auto line = text.substr(0, end);
    const auto space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    fields.emplace(line.substr(0, space), line.substr(space + 1));
    text.remove_prefix(end + 1);
  }
  return fields;
}

class RunReader {
 public:
  explicit RunReader(Fields fields) : fields_(std::move(fields)) {}

  template <class T>
  std::optional<T> number(std::string_view name) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) return std::nullopt;
    const auto text = found->second;
    T value{};
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end) return value;
    is_wrong_ = true;
    return std::nullopt;
  }

  milliseconds time(std::string_view name) {
    const auto value = number<std::int64_t>(name);
    if (!value || *value < 0 || *value > kLatest) is_wrong_ = true;
    return milliseconds(value.value_or(0));
  }

  /// For a line that earlier versions do not write.
  milliseconds time_or_zero(std::string_view name) {
    return fields_.contains(name) ? time(name) : milliseconds(0);
  }

  std::string text(std::string_view name) {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::string() : std::string(found->second);
  }

  bool is_wrong() const noexcept { return is_wrong_; }
  void refuse() noexcept { is_wrong_ = true; }

 private:
  Fields fields_;
  bool is_wrong_ = false;
};

Outcome outcome_of(RunReader& reader) {
  const auto word = reader.text("outcome");
  for (const auto each : kOutcomes) {
    if (word == to_string(each)) return each;
  }
  reader.refuse();
  return Outcome::running;
}

}  // namespace

std::string run_key(const std::string& name) { return "runs/" + name; }

std::string to_text(const RunRecord& record) {
  std::string text(kRunVersion);
  const auto put = [&text](std::string_view name, const auto& value) {
    text += fmt::format("{} {}\n", name, value);
  };
  put("outcome", to_string(record.outcome));
  if (record.tick) put("tick", *record.tick);
  put("started", record.started.count());
  put("at_most", record.at_most_until.count());
  put("at_least", record.at_least_until.count());
  if (record.ended) put("ended", record.ended->count());
  if (record.status) put("status", *record.status);
  if (record.token) put("token", *record.token);
  put("every", record.every.count());
  put("offset", record.offset.count());
  put("early", record.early.count());
  put("id", one_line(record.owner.id));
  put("host", one_line(record.owner.host));
  std::string pid;
  append_pid(record.owner, pid);
  put("pid", pid);
  put("app", one_line(record.owner.app));
  return text;
}

std::string newer_run(std::string_view text) {
  return newer_format("the note of its last run", text, kRunStamp, kRunFormat);
}

std::optional<RunRecord> parse_run(std::string_view text) {
  if (!text.starts_with(kRunVersion)) return std::nullopt;
  auto fields = fields_of(text.substr(kRunVersion.size()));
  if (!fields) return std::nullopt;
  RunReader reader(std::move(*fields));
  RunRecord record;
  record.outcome = outcome_of(reader);
  record.tick = reader.number<std::int64_t>("tick");
  record.started = reader.time("started");
  record.at_most_until = reader.time("at_most");
  record.at_least_until = reader.time("at_least");
  if (reader.number<std::int64_t>("ended")) record.ended = reader.time("ended");
  record.status = reader.number<int>("status");
  record.token = reader.number<std::uint64_t>("token");
  record.every = reader.time("every");
  record.offset = reader.time("offset");
  record.early = reader.time_or_zero("early");
  record.owner = {reader.text("id"), reader.text("host"), 0, reader.text("app")};
  if (!read_pid(reader.text("pid"), record.owner)) reader.refuse();
  // A number that is counted with it must stay within the range of times.
  const auto& tick = record.tick;
  if (tick && (record.every.count() == 0 || *tick < 0 || *tick > kLatest / record.every.count())) {
    reader.refuse();
  }
  if (reader.is_wrong()) return std::nullopt;
  return record;
}

}  // namespace dlock::core

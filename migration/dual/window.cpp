// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/spi/word.hpp"
#include "dlock/sequencer.hpp"
#include "migration/fields.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

constexpr std::string_view kWindowStamp = "dlock-window";
constexpr unsigned kWindowFormat = 1;
constexpr std::size_t kProgramId = 13;
constexpr std::size_t kLongestHost = 20;
constexpr std::size_t kLongestApp = 16;
constexpr std::uint64_t kMostChanges = 999'999'999'999;
constexpr std::uint64_t kMostPid = 9'999'999'999;

bool is_program_id(std::string_view text) {
  if (text.size() != kProgramId || text[8] != '-') return false;
  return std::all_of(text.begin(), text.begin() + 8, is_lower_hex) &&
         std::all_of(text.begin() + 9, text.end(), is_lower_hex);
}

bool is_plain(char c) { return c > ' ' && c < '\x7f'; }

bool is_plain_word(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && std::all_of(text.begin(), text.end(), is_plain);
}

std::string parse_id(Fields& fields, std::string_view key, bool (*is_good)(std::string_view)) {
  const auto text = fields.value(key);
  if (fields.good() && !is_good(text)) fields.fail(fmt::format("its {} is not one", key));
  return std::string(text);
}

std::string parse_word(Fields& fields, std::string_view key, std::size_t longest) {
  const auto text = fields.value(key);
  if (fields.good() && !is_plain_word(text, longest)) {
    fields.fail(fmt::format("its {} is not a word of at most {} bytes", key, longest));
  }
  return std::string(text);
}

std::string program_text(const Program& program) {
  return fmt::format("{} phase={} beat={} top={} pid={} host={} app={}", program.id, program.phase,
                     program.beat, program.top, program.pid, program.host, program.app);
}

Program parse_program(Fields& fields, std::uint64_t seq) {
  Program program;
  program.id = fields.word("program");
  if (fields.good() && !is_program_id(program.id)) fields.fail("a program's id is not one");
  program.phase = static_cast<int>(fields.number("phase", kLastPhase));
  program.beat = fields.number("beat", seq);
  program.top = fields.number("top", kTokenEnd - 1);
  program.pid = static_cast<std::int64_t>(fields.number("pid", kMostPid));
  program.host = parse_word(fields, "host", kLongestHost);
  program.app = parse_word(fields, "app", kLongestApp);
  fields.end();
  return program;
}

void parse_programs(Fields& fields, Window& window) {
  const auto count = fields.number("programs", kMostPrograms);
  for (std::uint64_t i = 0; i < count && fields.good(); ++i) {
    Fields line(fields.word("programs"), ' ');
    if (!fields.good()) return;
    auto program = parse_program(line, window.seq);
    if (!line.good()) return fields.fail(line.error());
    if (!window.programs.empty() && window.programs.back().id >= program.id) {
      return fields.fail("its programs are not in order");
    }
    window.programs.push_back(std::move(program));
  }
}

std::vector<Program>::iterator place_of(Window& window, std::string_view id) {
  return std::lower_bound(
      window.programs.begin(), window.programs.end(), id,
      [](const Program& program, std::string_view other) { return program.id < other; });
}

bool is_at(const Window& window, std::vector<Program>::const_iterator place, std::string_view id) {
  return place != window.programs.end() && place->id == id;
}

}  // namespace

const Program* Window::find(std::string_view id) const noexcept {
  const auto place = std::lower_bound(
      programs.begin(), programs.end(), id,
      [](const Program& program, std::string_view other) { return program.id < other; });
  return is_at(*this, place, id) ? &*place : nullptr;
}

std::uint64_t Window::highest_token() const noexcept {
  auto highest = std::max(floor, top);
  for (const auto& program : programs) highest = std::max(highest, program.top);
  return highest;
}

std::string window_key(std::string_view plan) { return fmt::format("window/{}", plan); }

std::string to_text(const Window& window) {
  std::string text = fmt::format(
      "{}{}\nplan={}\nid={}\nfrom={}\nto={}\nborn={}\nlo={}\nhi={}\nver={}\nseq={}\nfloor={}\ntop={"
      "}"
      "\n"
      "lease_ms={}\nfinished={}\nsince_ms={}\nprograms={}",
      kWindowStamp, kWindowFormat, window.plan, window.plan_id, window.from, window.to, window.born,
      window.lo, window.hi, window.ver, window.seq, window.floor, window.top, window.lease.count(),
      window.finished ? 1 : 0, window.since_ms, window.programs.size());
  for (const auto& program : window.programs) {
    text += '\n';
    text += program_text(program);
  }
  return text;
}

std::optional<Window> parse_window(std::string_view text, std::string* why) {
  Fields fields(text.substr(0, kLongestWindow + 1), '\n');
  if (text.size() > kLongestWindow) fields.fail("it is too long for a window");
  fields.format(kWindowStamp, kWindowFormat);
  Window window;
  window.plan = parse_id(fields, "plan", [](std::string_view word) { return is_word(word); });
  window.plan_id = parse_id(fields, "id", [](std::string_view id) { return is_plan_id(id); });
  window.from = parse_id(fields, "from", [](std::string_view word) { return is_word(word); });
  window.to = parse_id(fields, "to", [](std::string_view word) { return is_word(word); });
  window.born = parse_id(fields, "born", [](std::string_view id) { return is_plan_id(id); });
  window.lo = static_cast<int>(fields.number("lo", kLastPhase));
  window.hi = static_cast<int>(fields.number("hi", kLastPhase));
  window.ver = fields.number("ver", kMostChanges);
  window.seq = fields.number("seq", kMostChanges);
  window.floor = fields.number("floor", kTokenEnd - 1);
  window.top = fields.number("top", kTokenEnd - 1);
  window.lease = std::chrono::milliseconds(fields.number("lease_ms", kMostMilliseconds));
  window.finished = fields.number("finished", 1) == 1;
  window.since_ms = static_cast<std::int64_t>(fields.number("since_ms", kMostMilliseconds));
  if (fields.good() && (window.lo > window.hi || window.hi > window.lo + 1)) {
    fields.fail("its lo and hi are no window");
  }
  parse_programs(fields, window);
  fields.end();
  if (fields.good()) return window;
  if (why != nullptr) *why = fields.error();
  return std::nullopt;
}

std::string program_id(std::string_view uuid) { return std::string(uuid.substr(0, kProgramId)); }

bool is_claim_of(std::string_view claim_id, std::string_view program) noexcept {
  return program.size() == kProgramId && claim_id.find(program) != std::string_view::npos;
}

std::string coordinator_id(std::string_view plan_id) {
  return fmt::format("{}-{}", plan_id.substr(0, 8), plan_id.substr(8, 4));
}

std::string plain_word(std::string_view text, std::size_t longest) {
  std::string word(text.substr(0, longest));
  std::replace_if(
      word.begin(), word.end(), [](char c) { return !is_plain(c); }, '_');
  return word.empty() ? "-" : word;
}

Entry enter(Window& window, Program program) {
  if (!window.admits(program.phase)) return Entry::not_admitted;
  const auto place = place_of(window, program.id);
  const bool here = is_at(window, place, program.id);
  if (!here && window.programs.size() >= kMostPrograms) return Entry::full;
  program.beat = ++window.seq;
  program.host = plain_word(program.host, kLongestHost);
  program.app = plain_word(program.app, kLongestApp);
  program.pid = std::clamp<std::int64_t>(program.pid, 0, kMostPid);
  if (here) {
    program.top = std::max(program.top, place->top);
    *place = std::move(program);
  } else {
    window.programs.insert(place, std::move(program));
  }
  return Entry::entered;
}

bool renew(Window& window, std::string_view id, std::uint64_t top) {
  const auto place = place_of(window, id);
  if (!is_at(window, place, id)) return false;
  place->beat = ++window.seq;
  place->top = std::max(place->top, top);
  return true;
}

bool leave(Window& window, std::string_view id) {
  const auto place = place_of(window, id);
  if (!is_at(window, place, id)) return false;
  window.top = std::max(window.top, place->top);
  window.programs.erase(place);
  ++window.seq;
  return true;
}

std::vector<Program> laggards(const Window& window) {
  std::vector<Program> outside;
  std::copy_if(window.programs.begin(), window.programs.end(), std::back_inserter(outside),
               [&](const Program& program) { return !window.admits(program.phase); });
  return outside;
}

std::string describe(const Program& program) {
  const auto pid = program.pid == 0 ? "in a pid namespace" : fmt::format("pid {}", program.pid);
  return fmt::format("{} ({} on {}, phase {})", program.app == "-" ? "a process" : program.app, pid,
                     program.host, program.phase);
}

}  // namespace dlock::core::migration

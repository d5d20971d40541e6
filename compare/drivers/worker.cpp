// SPDX-License-Identifier: Apache-2.0
#include "compare/drivers/worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "dlock/clock.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::compare {

std::string Job::text(const char* name, const char* otherwise) const {
  const auto* value = fields.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : otherwise;
}

std::int64_t Job::number(const char* name, std::int64_t otherwise) const {
  const auto* value = fields.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<std::int64_t>() : otherwise;
}

std::chrono::milliseconds Job::milliseconds(const char* name, std::int64_t otherwise) const {
  return std::chrono::milliseconds(number(name, otherwise));
}

void say(const boost::json::object& event) {
  static std::mutex mutex;
  const std::string line = boost::json::serialize(event) + "\n";
  const std::scoped_lock guard(mutex);
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t result = ::write(STDOUT_FILENO, line.data() + written, line.size() - written);
    if (result < 0 && errno != EINTR) ::_exit(1);  // the suite is gone
    if (result > 0) written += static_cast<std::size_t>(result);
  }
}

// Unbuffered past the line, so that poll() on the descriptor tells of what comes after it.
bool read_command(std::string& line) {
  line.clear();
  char byte = 0;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (byte == '\n') return true;
    line.push_back(byte);
  }
}

void await_go() {
  say({{"event", "ready"}});
  std::string line;
  if (!read_command(line) || line != "go") throw std::runtime_error("no `go` came");
}

bool next_go() {
  std::string line;
  return read_command(line) && line == "go";
}

std::int64_t now_ns() { return BoottimeClock::now().time_since_epoch().count(); }

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void run_inspect(const Job& job) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  auto manager = LockManager::open(job.text("url"), options);
  const auto report = manager.inspect().at(0);
  if (!report.capabilities) throw std::runtime_error("cannot reach the store: " + report.message);
  const Capabilities& declared = *report.capabilities;
  boost::json::array assumptions, shortfalls, notes;
  for (const auto& one : declared.assumptions) assumptions.push_back({one.name, one.meaning});
  for (const auto& one : declared.shortfalls) shortfalls.push_back({one.reason, one.remedy});
  for (const auto& note : declared.notes) notes.push_back(boost::json::string(note));
  say({{"event", "result"},
       {"backend", report.backend},
       {"guarantee", to_string(declared.guarantee)},
       {"assumptions", std::move(assumptions)},
       {"shortfalls", std::move(shortfalls)},
       {"notes", std::move(notes)},
       {"fair", declared.fair},
       {"shared_mode", declared.shared_mode},
       {"permits", declared.permits},
       {"token", to_string(declared.token)},
       {"wake_up", to_string(declared.wake_up)},
       {"lease_scope", to_string(declared.lease_scope)},
       {"lease_ms", declared.lease.count()}});
}

int worker_main() {
  static const std::map<std::string, std::function<void(const Job&)>> programs{
      {"pairs", &run_pairs},     {"tasks", &run_tasks}, {"open", &run_open},
      {"contend", &run_contend}, {"crowd", &run_crowd}, {"guard", &run_guard},
      {"inspect", &run_inspect}, {"queue", &run_queue}, {"share", &run_share}};
  try {
    std::string line;
    if (!read_command(line)) throw std::runtime_error("there is no job on standard input");
    const Job job{boost::json::parse(line).as_object()};
    const auto program = programs.find(job.text("program"));
    if (program == programs.end()) throw std::runtime_error("no program " + job.text("program"));
    program->second(job);
    return 0;
  } catch (const LockError& error) {
    say({{"event", "failed"},
         {"why", fmt::format("{} {}", error.code().message(), error.server_text())}});
  } catch (const std::exception& error) {
    say({{"event", "failed"}, {"why", error.what()}});
  }
  return 1;
}

}  // namespace dlock::compare

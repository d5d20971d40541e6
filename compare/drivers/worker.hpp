// SPDX-License-Identifier: Apache-2.0
//
// A worker: a process of the suite that plays clients of a store. It reads a job, one line of JSON,
// from standard input, says {"event":"ready"}, waits for the line `go`, and answers in lines of
// JSON; each further `go` asks for the same again. compare/README.md has the protocol; peers in
// other languages speak it, too.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace dlock::compare {

/// The only argument of a worker's process.
constexpr const char* kWorkerVerb = "worker";

/// Runs the job on standard input. Returns the exit status.
int worker_main();

/// What a program of the worker works with.
struct Job {
  boost::json::object fields;

  std::string text(const char* name, const char* otherwise = "") const;
  std::int64_t number(const char* name, std::int64_t otherwise) const;
  std::chrono::milliseconds milliseconds(const char* name, std::int64_t otherwise) const;
};

/// One event on standard output, whole and at once. Any thread.
void say(const boost::json::object& event);
/// Says `ready` and waits for `go`; throws std::runtime_error at the end of input.
void await_go();
/// Waits for another `go`; false at the end of input.
bool next_go();
/// The next line of standard input without its newline; false at its end.
bool read_command(std::string& line);

/// The clock of all events: CLOCK_BOOTTIME in nanoseconds, the same in all processes.
std::int64_t now_ns();

/// CPU time of this process so far, in seconds.
double cpu_seconds();

// The programs.
void run_pairs(const Job& job);    ///< own locks, back to back: latency and throughput
void run_tasks(const Job& job);    ///< the same, by tasks instead of threads
void run_open(const Job& job);     ///< at a fixed rate: latency from when it was due
void run_contend(const Job& job);  ///< one lock: who asked, got and gave it when
void run_share(const Job& job);    ///< one lock of readers and writers, or permits: likewise
void run_crowd(const Job& job);    ///< many holders or waiters at rest
void run_guard(const Job& job);    ///< a holder that writes to a guarded resource
void run_inspect(const Job& job);  ///< what the store declares
void run_queue(const Job& job);    ///< a line of sessions, and one release

}  // namespace dlock::compare

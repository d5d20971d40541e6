// SPDX-License-Identifier: Apache-2.0
//
// The suite's end of a worker: a process that is given a job and tells in lines of JSON.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "compare/suite/context.hpp"
#include "testkit/process.hpp"

namespace dlock::compare {

/// What a worker is given to get ready, and to tell its result once it is done.
constexpr auto kWorkerPatience = std::chrono::seconds(60);

/// Not thread-safe. The destructor kills the process.
class Worker {
 public:
  /// Starts it and hands it the job. `command`: a peer's program; empty: this program itself.
  /// Throws std::system_error when it cannot be run.
  Worker(Context& context, const boost::json::object& job, std::vector<std::string> command = {});

  /// The next thing it said; nullopt at the deadline. Throws std::runtime_error when it failed or
  /// ended, Interrupted when the run is to end.
  std::optional<boost::json::object> next(testkit::Deadline deadline);
  /// Reads on to an event of that name; throws at the deadline.
  boost::json::object await(std::string_view event, testkit::Deadline deadline);
  void command(std::string_view line);
  testkit::Process& process() { return process_; }

 private:
  Context& context_;
  testkit::Process process_;
};

/// The whole of a job: ready, go, result.
boost::json::object run_worker(Context& context, const boost::json::object& job,
                               const std::vector<std::string>& command = {});

}  // namespace dlock::compare

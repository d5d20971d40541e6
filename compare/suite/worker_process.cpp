// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/worker_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "compare/drivers/worker.hpp"

namespace dlock::compare {

namespace {

std::vector<std::string> command_of(std::vector<std::string> peer) {
  if (!peer.empty()) return peer;
  return {"/proc/self/exe", kWorkerVerb};
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Worker::Worker(Context& context, const boost::json::object& job, std::vector<std::string> command)
    : context_(context), process_({.argv = command_of(std::move(command))}) {
  process_.write(boost::json::serialize(job) + "\n");
}

std::optional<boost::json::object> Worker::next(testkit::Deadline deadline) {
  while (true) {
    context_.interrupt.check();
    const auto slice = std::min(deadline, testkit::within(std::chrono::milliseconds(100)));
    // Asked for before reading: the last lines of a client that has ended are read, too.
    const bool ended = !process_.running();
    if (const auto line = process_.read_line(slice)) {
      auto event = boost::json::parse(*line).as_object();
      if (event.at("event") == "failed") {
        throw std::runtime_error(std::string(event.at("why").as_string()));
      }
      return event;
    }
    if (ended) {
      const auto why = last_line(process_.collected_stderr());
      throw std::runtime_error("a client ended" + (why.empty() ? "" : ": " + why));
    }
    if (testkit::Clock::now() >= deadline) return std::nullopt;
  }
}

boost::json::object Worker::await(std::string_view event, testkit::Deadline deadline) {
  while (auto said = next(deadline)) {
    if (said->at("event").as_string() == event) return std::move(*said);
  }
  throw std::runtime_error(fmt::format("a client did not come to '{}' in time", event));
}

void Worker::command(std::string_view line) { process_.write(std::string(line) + "\n"); }

boost::json::object run_worker(Context& context, const boost::json::object& job,
                               const std::vector<std::string>& command) {
  Worker worker(context, job, command);
  if (job.at("program") != "inspect") {
    worker.await("ready", testkit::within(kWorkerPatience));
    worker.command("go");
  }
  return worker.await("result", testkit::within(kWorkerPatience));
}

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/support/foreign_client.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace dlock::interop {
namespace {

std::optional<testkit::Clock::time_point> when(const std::string& answer) {
  if (!answer.starts_with("held ")) return std::nullopt;
  return testkit::Clock::time_point(std::chrono::nanoseconds(std::stoll(answer.substr(5))));
}

}  // namespace

ForeignClient::ForeignClient(testkit::ProcessOptions program) : process_(std::move(program)) {
  const auto said = answer();
  if (said.starts_with("missing ")) {
    throw std::runtime_error("a client of tests/interop is not there: " + said.substr(8));
  }
  if (said != "ready") throw std::runtime_error("not ready: " + said + process_.collected_stderr());
}

void ForeignClient::send(const std::string& command) {
  if (!process_.write(command + "\n")) {
    throw std::runtime_error("it has ended: " + process_.collected_stderr());
  }
}

std::string ForeignClient::ask(const std::string& command) {
  send(command);
  return answer();
}

std::string ForeignClient::answer(testkit::Deadline deadline) {
  return process_.read_line(deadline).value_or(std::string());
}

std::optional<testkit::Clock::time_point> ForeignClient::try_acquire(const std::string& name) {
  const auto said = ask("try " + name);
  if (said == "busy") return std::nullopt;
  if (const auto at = when(said)) return at;
  throw std::runtime_error("neither held nor busy: " + said + process_.collected_stderr());
}

std::optional<testkit::Clock::time_point> ForeignClient::granted(testkit::Deadline deadline) {
  return when(answer(deadline));
}

void ForeignClient::begin_count(const std::string& name, int times, const std::string& file) {
  send(fmt::format("count {} {} {}", name, times, file));
}

}  // namespace dlock::interop

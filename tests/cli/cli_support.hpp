// SPDX-License-Identifier: Apache-2.0
//
// The real dlock binary, run by tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::cli_test {

using namespace std::chrono_literals;
using testkit::patience;
using testkit::within;

/// The binary under test: that of this build, unless DLOCK_TEST_BINARY names another
/// (scripts/mutants).
inline std::string dlock_binary() {
  const char* other =
      std::getenv("DLOCK_TEST_BINARY");  // NOLINT(concurrency-mt-unsafe): set by nobody
  return other != nullptr ? other : DLOCK_BINARY;
}

/// A process of the binary under test. No configuration comes from the environment of the test.
inline testkit::ProcessOptions dlock(std::vector<std::string> arguments) {
  testkit::ProcessOptions options;
  options.argv = {dlock_binary()};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE",     "DLOCK_TOKEN",
                       "DLOCK_NAME",   "DLOCK_SEQUENCER", "DLOCK_HELD"};
  return options;
}

/// With `--store URL` in front.
inline testkit::ProcessOptions dlock_on(const std::string& url,
                                        std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--store", url});
  return dlock(std::move(arguments));
}

inline testkit::Finished finish(testkit::ProcessOptions options, std::string_view input = {}) {
  return testkit::run(std::move(options), input);
}

/// One line of JSON from a process; an empty object at its end.
inline boost::json::object read_event(testkit::Process& process) {
  const auto line = process.read_line(patience());
  if (!line) {
    ADD_FAILURE() << "no line; stderr: " << process.collected_stderr();
    return {};
  }
  boost::json::error_code error;
  const auto value = boost::json::parse(*line, error);
  if (error || !value.is_object()) {
    ADD_FAILURE() << "not a JSON object: " << *line;
    return {};
  }
  return value.as_object();
}

inline std::string text(const boost::json::object& object, const char* key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "(none)";
}

/// The names of its fields, in their order.
inline std::string keys(const boost::json::object& object) {
  std::string joined;
  for (const auto& pair : object) {
    joined += (joined.empty() ? "" : " ") + std::string(pair.key());
  }
  return joined;
}

/// A local store in a folder of its own.
class LocalStore {
 public:
  std::string url() const { return "file://" + (folder_.path() / "locks").string(); }
  const testkit::TempDir& folder() const { return folder_; }

 private:
  testkit::TempDir folder_{"dlock-cli-test"};
};

/// A pipe that is full and is not read: for ProcessOptions::log_file.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::mkfifo(path().c_str(), 0600), 0);
    descriptor_ = ::open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const std::string page(4096, 'x');
    while (::write(descriptor_, page.data(), page.size()) > 0) {
    }
  }
  ~FullPipe() { ::close(descriptor_); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  std::string path() const { return (folder_.path() / "pipe").string(); }
  /// Reads what is there.
  std::string drain() const {
    std::string all;
    std::string some(4096, '\0');
    for (ssize_t got = 0; (got = ::read(descriptor_, some.data(), some.size())) > 0;) {
      all.append(some, 0, static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  testkit::TempDir folder_{"dlock-cli-test"};
  int descriptor_ = -1;
};

/// `dlock status --json` of a lock.
inline boost::json::object status_of(const std::string& url, const std::string& name) {
  const auto result = finish(dlock_on(url, {"status", name, "--json"}));
  EXPECT_EQ(result.status.shell_status(), 0) << result.err;
  boost::json::error_code error;
  const auto value = boost::json::parse(result.out, error);
  return value.is_object() ? value.as_object() : boost::json::object{};
}

inline bool is_held(const std::string& url, const std::string& name) {
  const auto status = status_of(url, name);
  const auto* held = status.if_contains("held");
  return held != nullptr && held->is_bool() && held->as_bool();
}

inline std::size_t waiting(const std::string& url, const std::string& name) {
  const auto status = status_of(url, name);
  const auto* queue = status.if_contains("waiting");
  return queue != nullptr && queue->is_array() ? queue->as_array().size() : 0;
}

}  // namespace dlock::cli_test

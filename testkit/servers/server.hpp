// SPDX-License-Identifier: Apache-2.0
//
// A real server on loopback, with a temporary folder and a port of its own, that a test may stop,
// kill, pause and start again on the same port and data. It dies with the test.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "testkit/await.hpp"
#include "testkit/ports.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::testkit {

/// The server's program is not installed; the text names the Debian package.
class MissingPackage : public std::runtime_error {
 public:
  MissingPackage(std::string_view what, std::string_view package);
};

/// Where a program is; throws MissingPackage. Looks in PATH and where Debian puts servers.
std::filesystem::path find_server_program(std::string_view name, std::string_view package);

/// One request and what the server answers until it closes or `enough` is in it, on a connection of
/// its own to 127.0.0.1; empty when it cannot be reached. For readiness checks and ZooKeeper's
/// four-letter words.
std::string ask(std::uint16_t port, std::string_view request, std::string_view enough,
                Deadline deadline);

/// Not thread-safe. The destructor kills the server and removes its folder.
class Server {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Starts it and waits until it answers. Throws std::runtime_error with the end of its log when
  /// it ends instead, or does not answer in time.
  void start();
  /// SIGTERM, then SIGKILL after ten seconds; returns when it is gone.
  void stop();
  /// kill -9; returns when it is gone.
  void kill9();
  /// Stops it (if it runs) and starts it on the same port and data.
  void restart();
  /// SIGSTOP, and returns once it stands.
  void pause();
  void resume();

  bool running();
  pid_t pid() const;
  std::uint16_t port() const { return port_.number(); }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string log() const;

  /// What users write to reach it.
  virtual std::string url() const = 0;
  virtual bool answers() = 0;

 protected:
  explicit Server(std::string_view name);

  /// The command line; called at each start.
  virtual std::vector<std::string> command() = 0;
  /// Starts the process without waiting for an answer.
  void launch();
  void wait_until_it_answers(Deadline deadline);

 private:
  std::filesystem::path log_file() const { return folder_ / "server.log"; }

  std::string name_;
  TempDir folder_;
  Port port_;
  std::unique_ptr<Process> process_;
};

}  // namespace dlock::testkit

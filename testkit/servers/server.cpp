// SPDX-License-Identifier: Apache-2.0
#include "testkit/servers/server.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "testkit/sockets.hpp"

namespace dlock::testkit {

namespace {

std::string last_lines(const std::string& text) {
  constexpr std::size_t enough = 2000;
  return text.size() <= enough ? text : "..." + text.substr(text.size() - enough);
}

}  // namespace

MissingPackage::MissingPackage(std::string_view what, std::string_view package)
    : std::runtime_error(std::string(what) + " is not there: apt-get install " +
                         std::string(package)) {}

std::filesystem::path find_server_program(std::string_view name, std::string_view package) {
  const char* path = std::getenv("PATH");
  const std::string folders =
      std::string(path != nullptr ? path : "") + ":/usr/local/bin:/usr/bin:/usr/sbin:/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::filesystem::path candidate =
        std::filesystem::path(folders.substr(begin, end - begin)) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  throw MissingPackage(name, package);
}

std::string ask(std::uint16_t port, std::string_view request, std::string_view enough,
                Deadline deadline) {
  auto stream = TcpStream::connect(port, deadline);
  if (!stream || !stream->send(request)) return {};
  std::string answer;
  while (enough.empty() || answer.find(enough) == std::string::npos) {
    const std::string more = stream->receive_some(deadline);
    if (more.empty()) break;
    answer += more;
  }
  return answer;
}

Server::Server(std::string_view name) : name_(name), folder_("dlock-" + std::string(name)) {}

void Server::start() {
  launch();
  wait_until_it_answers(patience());
}

void Server::launch() {
  if (running()) return;
  process_ = std::make_unique<Process>(ProcessOptions{.argv = command(),
                                                      .working_directory = folder_.path(),
                                                      .stdin_from = ProcessOptions::Input::null,
                                                      .log_file = log_file()});
}

void Server::wait_until_it_answers(Deadline deadline) {
  const bool ready = eventually(deadline, [this] { return !running() || answers(); });
  if (ready && running()) return;
  const std::string reason = running() ? " does not answer in time" : " ended at its start";
  kill9();
  throw std::runtime_error(name_ + reason + "; the end of its log:\n" + last_lines(log()));
}

void Server::stop() {
  if (!process_) return;
  process_->resume();  // a paused process would sleep through SIGTERM
  process_->signal(SIGTERM);
  if (!process_->wait(within(std::chrono::seconds(10)))) process_->kill_and_wait();
  process_.reset();
}

void Server::kill9() { process_.reset(); }

void Server::restart() {
  stop();
  start();
}

void Server::pause() {
  if (process_) process_->pause();
}

void Server::resume() {
  if (process_) process_->resume();
}

bool Server::running() { return process_ && process_->running(); }

pid_t Server::pid() const { return process_ ? process_->pid() : -1; }

std::string Server::log() const {
  return std::filesystem::exists(log_file()) ? read_file(log_file()) : std::string();
}

}  // namespace dlock::testkit

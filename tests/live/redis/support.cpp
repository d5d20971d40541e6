// SPDX-License-Identifier: Apache-2.0
#include "tests/live/redis/support.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/redis/rules/info.hpp"
#include "testkit/process.hpp"

namespace dlock::testkit {

void WarningLog::add(std::string_view text) {
  const std::lock_guard lock(mutex_);
  text_.append(text).append("\n");
}

std::string WarningLog::all() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

LockManager open_redis(const std::string& url, std::shared_ptr<WarningLog> warnings) {
  OpenOptions options;
  options.backends = {&redis::backend()};
  options.log = [warnings](LogLevel, std::string_view text) {
    if (warnings) warnings->add(text);
  };
  return LockManager::open(url, std::move(options));
}

RedisClient::RedisClient(std::uint16_t port)
    : stream_([port] {
        auto stream = TcpStream::connect(port);
        if (!stream) throw std::runtime_error("no Redis server on port " + std::to_string(port));
        return std::move(*stream);
      }()) {}

void RedisClient::send(const redis::Command& command) {
  std::string bytes;
  redis::append_command(command, bytes);
  stream_.send(bytes);
}

std::optional<redis::Reply> RedisClient::next(Deadline deadline) {
  for (;;) {
    if (auto reply = reader_.next()) return reply;
    const auto bytes = stream_.receive_some(deadline);
    if (bytes.empty()) return std::nullopt;
    reader_.feed(bytes);
  }
}

redis::Reply RedisClient::ask(const redis::Command& command, Deadline deadline) {
  send(command);
  auto reply = next(deadline);
  EXPECT_TRUE(reply) << command.front();
  return reply.value_or(redis::Reply());
}

std::string RedisClient::info(const std::string& section, const std::string& key) {
  const auto lines = redis::parse_info(ask({"INFO", section}).text);
  const auto found = lines.find(key);
  return found == lines.end() ? std::string() : found->second;
}

long RedisClient::calls(const std::string& command) {
  const auto line = info("commandstats", "cmdstat_" + command);
  if (!line.starts_with("calls=")) return 0;
  return std::strtol(line.c_str() + 6, nullptr, 10);
}

Certificates::Certificates() {
  make_authority("ca");
  make("server");
}

void Certificates::openssl(const std::vector<std::string>& arguments) {
  ProcessOptions options;
  options.argv = {"openssl"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.working_directory = folder_.path();
  const auto finished = run(options);
  ASSERT_TRUE(finished.status.success()) << finished.err;
}

void Certificates::make_authority(const std::string& name) {
  openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=" + name,
           "-keyout", name + ".key", "-out", name + ".crt"});
}

void Certificates::make(const std::string& name, bool expired) {
  write_file(folder_ / (name + ".ext"),
             "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:locks.test\n");
  openssl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key",
           "-out", name + ".csr"});
  openssl({"x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
           "-CAcreateserial", "-days", expired ? "-1" : "30", "-extfile", name + ".ext", "-out",
           name + ".crt"});
}

RedisTlsServer::RedisTlsServer(const Certificates& certificates, const std::string& certificate,
                               const std::string& clients)
    : server({"--tls-port", std::to_string(port.number()), "--tls-cert-file",
              certificates.file(certificate + ".crt"), "--tls-key-file",
              certificates.file(certificate + ".key"), "--tls-ca-cert-file",
              certificates.file("ca.crt"), "--tls-auth-clients", clients}) {
  server.start();
}

std::string RedisTlsServer::url(const std::string& rest, const std::string& host) const {
  return "rediss://" + host + ":" + std::to_string(port.number()) + rest;
}

}  // namespace dlock::testkit

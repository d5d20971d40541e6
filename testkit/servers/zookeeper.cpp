// SPDX-License-Identifier: Apache-2.0
#include "testkit/servers/zookeeper.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace dlock::testkit {

namespace {

// Debian's zookeeper.jar names all the jars it needs in its manifest, except a logger's.
std::string class_path() {
  const std::filesystem::path jars = "/usr/share/java";
  const std::filesystem::path zookeeper = jars / "zookeeper.jar";
  if (!std::filesystem::exists(zookeeper))
    throw MissingPackage(zookeeper.string(), "libzookeeper-java");
  return fmt::format("{}:{}", zookeeper.string(), (jars / "slf4j-simple.jar").string());
}

}  // namespace

ZooKeeperServer::ZooKeeperServer(ZooKeeperOptions options)
    : Server("zookeeper"), options_(std::move(options)) {}

std::string ZooKeeperServer::url() const {
  return fmt::format("zookeeper://127.0.0.1:{}/", port());
}

bool ZooKeeperServer::answers() { return four_letter("ruok") == "imok" && !mode().empty(); }

std::string ZooKeeperServer::four_letter(std::string_view word,
                                         std::chrono::milliseconds patience) const {
  return ask(port(), word, "", within(patience));
}

std::string ZooKeeperServer::mode() const {
  // Short: a stopped server accepts the connection and says nothing.
  const std::string answer = four_letter("srvr", std::chrono::seconds(1));
  const std::string_view label = "Mode: ";
  const std::size_t begin = answer.find(label);
  if (begin == std::string::npos) return {};
  return answer.substr(begin + label.size(), answer.find('\n', begin) - begin - label.size());
}

std::vector<std::string> ZooKeeperServer::command() {
  const std::string java = find_server_program("java", "default-jre-headless").string();
  const std::string jars = class_path();
  const std::filesystem::path data = folder() / "data";
  std::filesystem::create_directories(data);
  if (id_ != 0) write_file(data / "myid", std::to_string(id_));

  std::string config = fmt::format(
      "dataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\ntickTime={}\n"
      "initLimit={}\nsyncLimit={}\nmaxClientCnxns=0\n"
      "admin.enableServer=false\n4lw.commands.whitelist=*\n",
      data.string(), port(), options_.tick.count(), options_.init_limit, options_.sync_limit);
  if (options_.min_session_timeout.count() > 0) {
    config += fmt::format("minSessionTimeout={}\n", options_.min_session_timeout.count());
  }
  if (options_.max_session_timeout.count() > 0) {
    config += fmt::format("maxSessionTimeout={}\n", options_.max_session_timeout.count());
  }
  for (const std::string& line : quorum_lines_) config += line + "\n";
  for (const std::string& line : options_.extra_config) config += line + "\n";
  write_file(folder() / "zoo.cfg", config);

  std::vector<std::string> command{
      java,
      "-Xmx128m",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      "-Xshare:auto",
      "-XX:-UsePerfData",
      fmt::format("-Djava.io.tmpdir={}", folder().string()),
      fmt::format("-Dzookeeper.forceSync={}", options_.fsync ? "yes" : "no"),
      "-Dzookeeper.preAllocSize=64",
      "-Dzookeeper.snapshot.compression.method=",
      fmt::format("-Dznode.container.checkIntervalMs={}", options_.container_check.count()),
      "-Dorg.slf4j.simpleLogger.showDateTime=true",
      "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
  };
  command.insert(command.end(), options_.java_options.begin(), options_.java_options.end());
  command.insert(command.end(), {"-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                 (folder() / "zoo.cfg").string()});
  return command;
}

}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// Apache Curator, from the Debian packages libcurator-recipes-java and default-jdk-headless.
#include <filesystem>

#include "testkit/servers/server.hpp"
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

std::string jars() {
  const std::filesystem::path java = "/usr/share/java";
  std::string all;
  for (const auto* jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                          "slf4j-api", "slf4j-nop", "guava"}) {
    const auto file = java / (std::string(jar) + ".jar");
    if (!std::filesystem::exists(file)) {
      throw testkit::MissingPackage(file.string(), "libcurator-recipes-java");
    }
    all += (all.empty() ? "" : ":") + file.string();
  }
  return all;
}

Peer peer(std::string name, std::string kind) {
  return {.name = std::move(name),
          .start_store = start_zookeeper,
          .key = "/app/{name}",
          .program =
              [kind](const SharedStore& store, std::chrono::milliseconds lease) {
                // It is run from its source, for which a compiler is needed.
                (void)testkit::find_server_program("javac", "default-jdk-headless");
                testkit::ProcessOptions options;
                options.argv = {"java",
                                "-XX:TieredStopAtLevel=1",
                                "-XX:+UseSerialGC",
                                "-Xshare:auto",
                                "-cp",
                                jars(),
                                std::string(DLOCK_INTEROP_CLIENTS) + "/CuratorClient.java",
                                store.endpoint(),
                                std::to_string(lease.count()),
                                "/app/",
                                kind};
                return options;
              },
          .silent_about_loss = true};
}

}  // namespace

const Peer* curator() {
  static const Peer one = peer("Curator", "mutex");
  return &one;
}

const Peer* curator_leader() {
  static const Peer one = peer("CuratorLeaderSelector", "leader");
  return &one;
}

const Peer* curator_write_lock() {
  static const Peer one = peer("CuratorWriteLock", "write");
  return &one;
}

const ReadWritePeer& curator_readers() {
  static const Peer reader = peer("CuratorReader", "read");
  static const ReadWritePeer both{&reader, curator_write_lock()};
  return both;
}

const Peer* curator_semaphore() {
  static const Peer one = peer("CuratorSemaphoreMutex", "semaphore");
  return &one;
}

const Peer* curator_permits() {
  static const Peer one = peer("CuratorSemaphoreV2", "permits3");
  return &one;
}

}  // namespace dlock::interop

// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/curator.hpp"

#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::fleet {
namespace {

// Run from its source by `java`.
constexpr const char* kCurator = R"java(
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class CuratorMutex {
  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
  public static void main(String[] arguments) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(
        arguments[0], 10000, 15000, new ExponentialBackoffRetry(100, 3));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex lock = new InterProcessMutex(client, arguments[1]);
    boolean at_once = lock.acquire(0, TimeUnit.MILLISECONDS);
    say("tried " + at_once);
    if (!at_once) lock.acquire();
    say("held");
    System.in.read();
    lock.release();
    say("released");
    client.close();
  }
}
)java";

}  // namespace

testkit::ProcessOptions curator(const std::filesystem::path& folder, const std::string& hosts,
                                const std::string& node) {
  const std::filesystem::path java = "/usr/share/java";
  testkit::ProcessOptions options;
  std::string jars;
  for (const auto* jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                          "slf4j-api", "slf4j-nop", "guava"}) {
    const auto file = java / (std::string(jar) + ".jar");
    if (!std::filesystem::exists(file)) {
      throw testkit::MissingPackage(file.string(), "libcurator-recipes-java");
    }
    jars += (jars.empty() ? "" : ":") + file.string();
  }
  const auto program = folder / "CuratorMutex.java";
  testkit::write_file(program, kCurator);
  options.argv = {
      "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars, program.string(), hosts,
      node};
  return options;
}

}  // namespace dlock::fleet

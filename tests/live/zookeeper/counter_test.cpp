// SPDX-License-Identifier: Apache-2.0
//
// F53: a lock path that was used 2^31 times. The parent's counter is set near its end in the
// server's snapshot; from there on the server gives numbers that tie, turn negative and repeat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

constexpr std::uint32_t kNearTheEnd = 2147483647 - 3;

std::string big_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return out;
}

std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return (b << 16U) | a;
}

std::filesystem::path newest_snapshot(const std::filesystem::path& data) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(data / "version-2")) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("snapshot.")) continue;
    if (newest.empty() || std::filesystem::last_write_time(newest) < entry.last_write_time()) {
      newest = entry.path();
    }
  }
  return newest;
}

/// A node in a snapshot: its path, its data, its ACL's number, and its statistics, in which the
/// counter of its children's names is the sixth field. The file ends in its checksum and "/".
void set_counter(const std::filesystem::path& snapshot, const std::string& node,
                 std::uint32_t counter) {
  auto bytes = read_file(snapshot);
  const auto key = big_endian(node.size(), 4) + node;
  const auto at = bytes.find(key);
  ASSERT_NE(at, std::string::npos) << node;
  auto field = at + key.size();
  std::uint32_t length = 0;  // of the data; -1: none
  for (int i = 0; i < 4; ++i) length = (length << 8U) | static_cast<unsigned char>(bytes[field++]);
  if (length != 0xFFFFFFFFU) field += length;
  field += 8 + 4 * 8 + 4;  // ACL, two zxids and two times, version
  bytes.replace(field, 4, big_endian(counter, 4));
  const std::size_t seal = bytes.size() - (8 + 4 + 1);
  bytes.replace(seal, 8, big_endian(adler32(std::string_view(bytes).substr(0, seal)), 8));
  write_file(snapshot, bytes);
}

TEST(ZooKeeperCounter, F53_ExclusionHoldsAtTheEndOfTheCounter) {
  ZooKeeperServer server({.tick = 500ms, .java_options = {"-Dzookeeper.digest.enabled=false"}});
  server.start();
  const auto url = url_of({server.port()}, "/app?session_timeout=5s");
  open_zookeeper(url).lock("job")->acquire().release();
  server.restart();  // writes a snapshot that has the node
  server.stop();
  set_counter(newest_snapshot(server.folder() / "data"), "/app/job", kNearTheEnd);
  ASSERT_FALSE(HasFatalFailure());
  server.start();

  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> grants{0};
  std::vector<LockManager> managers;
  for (int i = 0; i < 3; ++i) managers.push_back(open_zookeeper(url));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, lock = managers[i % 3].lock("job")] {
      for (int round = 0; round < 30; ++round) {
        auto held = lock->acquire({.wait = 60s});
        if (++inside != 1) ++overlaps;
        ++grants;
        std::this_thread::yield();
        --inside;
        held.release();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(grants, 180);
  EXPECT_EQ(overlaps, 0);
  BareClient client(server.port());
  const auto last = client.create("/app/job/lock-");
  EXPECT_TRUE(last.ends_with("-2147483647") || last.find("--") != std::string::npos) << last;
}

}  // namespace
}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// dlock and a client of libmemcached choose the same server for each key.
#include <sstream>
#include <vector>

#include "testkit/servers/server.hpp"
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

constexpr int kNames = 200;

class InteropPlacement : public PairTest {
 protected:
  static std::string name_at(int number) { return "placed/" + std::to_string(number); }

  /// Returns how many of the locks' keys are on each server.
  std::vector<int> keys_on_servers() const {
    std::string request = "get";
    for (int i = 0; i < kNames; ++i) request += " " + key_of(peer().key, name_at(i));
    std::vector<int> counts;
    std::istringstream servers(store_->endpoint());
    for (std::string server; std::getline(servers, server, ',');) {
      const auto port = std::stoi(server.substr(server.find(':') + 1));
      const auto said =
          testkit::ask(static_cast<std::uint16_t>(port), request + "\r\n", "END\r\n", patience());
      int count = 0;
      for (std::size_t at = 0; (at = said.find("VALUE ", at)) != said.npos; ++at) ++count;
      counts.push_back(count);
    }
    return counts;
  }
};

TEST_P(InteropPlacement, EachClientFindsTheOthersLocksOnThreeServers) {
  ForeignClient theirs(their_program(60s));
  auto locks = open(url(60s));
  std::vector<LockHandle> held;
  for (int i = 0; i < kNames; ++i) held.push_back(locks.lock(name_at(i))->acquire());
  const auto counts = keys_on_servers();
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], kNames);
  for (const int count : counts) EXPECT_GT(count, kNames / 10);
  for (int i = 0; i < kNames; ++i) {
    EXPECT_FALSE(theirs.try_acquire(name_at(i))) << "two holders of " << name_at(i);
  }

  for (auto& handle : held) EXPECT_FALSE(handle.release());
  for (int i = 0; i < kNames; ++i) ASSERT_TRUE(theirs.try_acquire(name_at(i))) << name_at(i);
  EXPECT_EQ(keys_on_servers(), counts);
  for (int i = 0; i < kNames; ++i) {
    EXPECT_FALSE(locks.lock(name_at(i))->try_acquire()) << "two holders of " << name_at(i);
  }
}

INSTANTIATE_TEST_SUITE_P(With, InteropPlacement, testing::ValuesIn(placing_peers()), name_of);

}  // namespace
}  // namespace dlock::interop

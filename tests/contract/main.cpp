// SPDX-License-Identifier: Apache-2.0
//
// The suite as a program: of this tree's backends, or of somebody else's.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/contract/peer.hpp"

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == dlock::contract::kPeerFlag) {
    return dlock::contract::run_peer(argv[2], argv[3], dlock::contract::PeerKind::parse(argv[4]));
  }
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const auto& all = *::testing::UnitTest::GetInstance();
  if (result == 0 && all.test_to_run_count() == 0 && !GTEST_FLAG_GET(list_tests)) {
    std::fprintf(stderr, "no test was run: no store, or a filter that fits none\n");
    return 1;
  }
  return result;
}

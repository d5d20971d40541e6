// SPDX-License-Identifier: Apache-2.0
//
// An ordinary user at the limit of threads or of descriptors, on every store.
#include <gtest/gtest.h>

#include <string>

#include "testkit/process.hpp"
#include "tests/live/surroundings/stores.hpp"

namespace dlock::testkit {
namespace {

class Limits : public testing::TestWithParam<std::string> {
 protected:
  void meet(const std::string& limit, const std::string& when) {
    ProcessOptions options;
    options.argv = {DLOCK_LIMITED, store_.url(), limit, when};
    Process program(std::move(options));
    const auto status = program.wait(within(80s));
    ASSERT_TRUE(status) << limit << " " << when << ": it does not end";
    EXPECT_EQ(status->signal, 0) << limit << " " << when << program.collected_stderr();
    EXPECT_EQ(status->code, 0) << limit << " " << when << ": " << program.unread_stdout()
                               << program.collected_stderr();
    RecordProperty(limit + "_" + when, program.collected_stderr().substr(0, 300));
  }

  SurroundedStore store_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Stores, Limits, testing::ValuesIn(shared_stores()),
                         [](const auto& one) { return one.param; });

TEST_P(Limits, P04_WithoutThreadsCallsEndWithAnErrorAndWorkAgain) {
  meet("threads", "cold");
  meet("threads", "warm");
}

TEST_P(Limits, P05_WithoutDescriptorsCallsEndWithAnErrorAndWorkAgain) {
  meet("descriptors", "cold");
  meet("descriptors", "warm");
}

}  // namespace
}  // namespace dlock::testkit

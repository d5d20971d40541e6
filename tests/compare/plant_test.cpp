// SPDX-License-Identifier: Apache-2.0
//
// A promise that is not kept fails the run: clients with planted defects, one for each promise.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

struct Plant {
  const char* name;
  const char* defect;
  const char* scenario;
  const char* store;
  const char* complaint;
};

void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

class ComparePlant : public testing::TestWithParam<Plant> {};

TEST_P(ComparePlant, FailsTheRun) {
  const Plant& plant = GetParam();
  testkit::TempDir folder;
  const auto run = testkit::run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios", plant.scenario, "--stores",
                plant.store, "--plant", plant.defect, "--out", folder.path().string()}},
      {}, testkit::within(std::chrono::seconds(120)));
  EXPECT_EQ(run.status.shell_status(), 1) << run.err;
  EXPECT_NE(run.out.find(plant.complaint), std::string::npos) << run.out;
}

// A holder that looks at its lock seldom believes no longer than it may, and tells no lie.
TEST(ComparePlants, ALateLookContradictsNothing) {
  testkit::TempDir folder;
  const auto run = testkit::run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios", "safety.holder_paused",
                "--stores", "redis-durable", "--plant", "doze", "--out", folder.path().string()}},
      {}, testkit::within(std::chrono::seconds(120)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.out << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    , ComparePlant,
    testing::Values(
        Plant{"exclusive_redis", "deaf", "safety.holder_partitioned", "redis-durable",
              "declares exclusive, and granted"},
        Plant{"exclusive_zookeeper", "deaf", "safety.holder_paused", "zookeeper",
              "declares exclusive, and granted"},
        Plant{"token", "high_token", "safety.holder_killed", "redis", "tokens, and they fell"},
        Plant{"order", "dawdle", "safety.order", "local", "first come, first served"},
        Plant{"wake_up", "dawdle", "safety.wake_up", "redis", "declares that waiters are told"},
        Plant{"progress", "keep", "safety.order", "local", "nobody in line was granted"},
        Plant{"told_once", "twice", "safety.holder_paused", "redis", "told wrongly"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
//
// When a create proves that its node is the only one of its lock.
#include <gtest/gtest.h>

#include "backends/zookeeper/rules/undisturbed.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::int64_t kBorn = (std::int64_t{3} << 32) + 7;

/// Who was alone, and has left.
Undisturbed left(const std::string& directory, std::int64_t born) {
  Undisturbed undisturbed;
  undisturbed.alone(directory, born);
  undisturbed.removed(directory, born);
  return undisturbed;
}

TEST(Undisturbed, NothingButOurDeleteLiesBetweenTwoBirths) {
  const auto basis = left("/a", kBorn).basis("/a");
  EXPECT_EQ(basis, kBorn);
  EXPECT_TRUE(Undisturbed::proves(basis, kBorn + 2));
}

TEST(Undisturbed, OneWriteMoreMayBeSomebodyElses) {
  for (const std::int64_t more : {-2, 0, 1, 3, 4, 1000}) {
    EXPECT_FALSE(Undisturbed::proves(kBorn, kBorn + more)) << more;
  }
  const auto next_epoch = (std::int64_t{4} << 32) + 2;
  EXPECT_FALSE(Undisturbed::proves(kBorn, next_epoch));
}

TEST(Undisturbed, AnotherSessionMayBeAnotherEnsembles) {
  auto undisturbed = left("/a", kBorn);
  undisturbed.entered(true);
  undisturbed.entered(true);
  undisturbed.forget();
  EXPECT_EQ(undisturbed.basis("/a"), 0);
  EXPECT_FALSE(undisturbed.is_likely());
}

TEST(Undisturbed, WhoHasNotBeenAloneProvesNothing) {
  const Undisturbed nobody;
  EXPECT_EQ(nobody.basis("/a"), 0);
  EXPECT_EQ(nobody.basis(""), 0);
  EXPECT_FALSE(Undisturbed::proves(0, 2));
}

TEST(Undisturbed, ANodeThatMayStillBeThereProvesNothing) {
  Undisturbed undisturbed;
  undisturbed.alone("/a", kBorn);
  EXPECT_EQ(undisturbed.basis("/a"), 0);
  undisturbed.removed("/a", kBorn + 1);  // another one of ours
  undisturbed.removed("/b", kBorn);
  EXPECT_EQ(undisturbed.basis("/a"), 0);
  undisturbed.removed("/a", kBorn);
  undisturbed.alone("/a", kBorn + 2);
  EXPECT_EQ(undisturbed.basis("/a"), 0);
}

TEST(Undisturbed, ANodeThatLeavesLateTakesNothingBack) {
  auto undisturbed = left("/a", kBorn);
  undisturbed.removed("/a", kBorn - 5);
  EXPECT_EQ(undisturbed.basis("/a"), kBorn);
}

TEST(Undisturbed, AnotherLockProvesNothing) { EXPECT_EQ(left("/a", kBorn).basis("/b"), 0); }

TEST(Undisturbed, IsLikelyAfterTwoInARow) {
  Undisturbed undisturbed;
  EXPECT_FALSE(undisturbed.is_likely());
  undisturbed.entered(true);
  EXPECT_FALSE(undisturbed.is_likely());
  undisturbed.entered(true);
  EXPECT_TRUE(undisturbed.is_likely());
  undisturbed.entered(false);
  EXPECT_FALSE(undisturbed.is_likely());
  undisturbed.entered(true);
  EXPECT_FALSE(undisturbed.is_likely());
}

}  // namespace
}  // namespace dlock::zookeeper

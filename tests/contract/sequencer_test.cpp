// SPDX-License-Identifier: Apache-2.0
//
// A grant that is passed on: its text, and what its store says of it later.
#include "dlock/sequencer.hpp"

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SequencerContract : public Contract {};
DLOCK_CONTRACT(SequencerContract);

TEST_P(SequencerContract, NamesTheGrantAndIsCurrentWhileItIsHeld) {
  auto manager = open();
  const std::string name = "orders/42: \xC3\xA9";
  auto held = manager.lock(name)->acquire({.wait = 30s});
  const auto sequencer = held.sequencer();
  ASSERT_EQ(sequencer.has_value(), capabilities().token != TokenStrength::none);
  if (!sequencer) return;
  EXPECT_EQ(sequencer->name(), name);
  EXPECT_EQ(sequencer->token(), held.token());
  EXPECT_EQ(sequencer->store(), held.store());
  EXPECT_EQ(Sequencer::parse(sequencer->to_string()), *sequencer);

  const auto now = observer().check(*sequencer);
  EXPECT_EQ(now.standing, Standing::current) << now.message;
  EXPECT_EQ(now.present_token, sequencer->token());
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(held.sequencer()) << "an empty handle has none";
  EXPECT_TRUE(becomes_free(name));
  EXPECT_EQ(observer().check(*sequencer).standing, Standing::not_held);

  auto next = manager.lock(name)->acquire({.wait = 30s});
  EXPECT_GT(next.sequencer()->token(), sequencer->token());
  EXPECT_EQ(observer().check(*sequencer).standing, Standing::superseded);
  EXPECT_EQ(observer().check(*next.sequencer()).standing, Standing::current);
}

}  // namespace
}  // namespace dlock::contract

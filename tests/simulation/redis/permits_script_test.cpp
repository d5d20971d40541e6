// SPDX-License-Identifier: Apache-2.0
//
// The scripts of semaphores, one by one: what a renewal prolongs.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/redis/scripts/scripts.hpp"
#include "tests/simulation/redis/server.hpp"
#include "tests/simulation/redis/session.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr auto kOwner = "01234567-89ab-4def-8123-456789abcdef,host,42,app";
constexpr auto kOther = "89abcdef-0123-4567-89ab-cdef01234567,host,43,app";
constexpr milliseconds kLeaseTime{1000};

/// A server with one semaphore of one permit, and its production scripts.
class PermitsScripts : public ::testing::Test {
 protected:
  PermitsScripts() {
    server_->set_clock_offset(milliseconds(1'700'000'000'000));
    session_->set_id(server_->admit(session_));
  }

  /// Returns the token; empty: no permit is free.
  std::string acquire(const std::string& owner) {
    const auto answer = ask(production::scripts().acquire_permits,
                            {owner, "1", "1", lease(), "0", "0", "", "0", "wake:", "0", "",
                             "9223372036854775807", "tag"});
    return answer.items.at(0).integer == 1 ? answer.items.at(1).text : std::string();
  }
  std::int64_t renew(const std::string& owner, const std::string& token) {
    return ask(production::scripts().renew_permits, {owner, lease(), token, "tag"})
        .items.at(0)
        .integer;
  }
  void evict(const std::string& token) {
    const auto answer =
        ask(production::scripts().evict_permits, {token, "wake:", "v=1,host,1,app,0,", "1", "tag"})
            .items.at(0)
            .integer;
    EXPECT_EQ(answer, 1);
  }
  void pass(milliseconds time) { world_.run_until(world_.now() + time); }

 private:
  static std::string lease() { return std::to_string(kLeaseTime.count()); }
  Reply ask(const production::Script& script, const Command& arguments) {
    Command command{"EVAL", script.text, "1", "permits"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto answer = server_->serve(*session_, command);
    EXPECT_EQ(answer.kind, Reply::Kind::array) << answer.text;
    return answer;
  }

  World world_{1};
  Network network_{world_};
  Process process_{world_, "test", {}};
  std::shared_ptr<Client> client_ = std::make_shared<Client>(Client{process_, network_});
  std::shared_ptr<Server> server_ =
      std::make_shared<Server>(world_, ServerSettings{}, Lineage{make_run_id(world_)});
  std::shared_ptr<Session> session_ =
      std::make_shared<Session>(world_, server_, client_, std::weak_ptr<SimStream>());
};

// A late copy of an acquire is granted again after the first grant expired.
TEST_F(PermitsScripts, ARenewalDoesNotProlongALaterGrantOfItsOwner) {
  const auto first = acquire(kOwner);
  ASSERT_FALSE(first.empty());
  pass(kLeaseTime + milliseconds(1));
  const auto later = acquire(kOwner);
  ASSERT_FALSE(later.empty());
  ASSERT_NE(later, first);
  pass(kLeaseTime / 2);
  EXPECT_EQ(renew(kOwner, first), 0) << "gone";
  pass(kLeaseTime / 2 + milliseconds(1));
  EXPECT_FALSE(acquire(kOther).empty()) << "the later grant was prolonged";
}

TEST_F(PermitsScripts, ARenewalProlongsItsOwnGrant) {
  const auto token = acquire(kOwner);
  pass(kLeaseTime / 2);
  EXPECT_EQ(renew(kOwner, token), 1);
  pass(kLeaseTime / 2 + milliseconds(1));
  EXPECT_TRUE(acquire(kOther).empty());
  EXPECT_EQ(renew(kOther, token), 0) << "another owner";
}

TEST_F(PermitsScripts, ARenewalReportsTheEvictionOfItsOwnGrantOnly) {
  const auto first = acquire(kOwner);
  pass(kLeaseTime + milliseconds(1));
  const auto later = acquire(kOwner);
  evict(later);
  EXPECT_EQ(renew(kOwner, first), 0) << "gone";
  EXPECT_EQ(renew(kOwner, later), 3) << "evicted";
}

}  // namespace
}  // namespace dlock::simulation::redis

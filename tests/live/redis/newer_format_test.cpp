// SPDX-License-Identifier: Apache-2.0
//
// Records of a newer dlock: each call is refused with both formats, and the record stays as it is.
#include <gmock/gmock.h>

#include <functional>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

constexpr AcquireOptions kSoon{.wait = 20s};
constexpr AcquireOptions kReadSoon{.wait = 20s, .mode = Mode::shared};
constexpr auto kOtherWaiter =
    "33333333-0000-4000-8000-000000000000 00000000-0000-4000-8000-000000000001,host,1,app";

struct Record {
  const char* key;
  const char* text;
};
constexpr Record kNewerReaders{"dlock:{x}", "dlock:readers v=2\n9000000000000 17 1 other\n"};
constexpr Record kNewerFence{"dlock:{x}%fence", "v=2 17"};
constexpr Record kNewerPermits{"dlock:{x}%permits", "dlock:permits v=2 limit=3 token=17\n"};

/// Throws the error of the first lock that the list leaves out.
template <class Status>
void throw_first(LockManager& locks,
                 std::vector<Status> (LockManager::*list)(const std::string&,
                                                          std::vector<LockError>&)) {
  std::vector<LockError> unread;
  (void)(locks.*list)({}, unread);
  if (!unread.empty()) throw unread.front();
}

class RedisNewerFormat : public RedisTest {
 protected:
  using Call = std::function<void(LockManager&)>;

  static std::string refusal(const std::string& key) {
    return key + " has format 2; this program reads format 1; upgrade it";
  }
  static void expect_refused(LockManager& locks, const std::string& key, const Call& call) {
    try {
      call(locks);
      ADD_FAILURE() << "not refused";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::newer_format) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(refusal(key)));
    }
  }
  void put(const Record& record) { client().ask({"SET", record.key, record.text}); }
  void put_waiter() {
    client().ask({"ZADD", "dlock:{x}%queue", "1", kOtherWaiter});
    client().ask({"HSET", "dlock:{x}%alive", kOtherWaiter, "v=2 by=clock"});
  }
};

TEST_F(RedisNewerFormat, EachCallIsRefusedAndTheRecordStays) {
  auto locks = open("&poll=200ms");
  auto fair = open("&fair=true");
  const struct {
    const char* what;
    Record record;
    Call call;
  } rows[] = {
      {"try_acquire", kNewerReaders, [](auto& all) { (void)all.lock("x")->try_acquire(); }},
      {"acquire", kNewerReaders, [](auto& all) { (void)all.lock("x")->acquire(kSoon); }},
      {"read", kNewerReaders, [](auto& all) { (void)all.lock("x")->acquire(kReadSoon); }},
      {"status", kNewerReaders, [](auto& all) { (void)all.status("x"); }},
      {"list", kNewerReaders, [](auto& all) { throw_first(all, &LockManager::list); }},
      {"evict", kNewerReaders, [](auto& all) { all.evict("x", 17, {.at_once = true}); }},
      {"mark", kNewerReaders, [](auto& all) { all.evict("x", 17); }},
      {"ask", kNewerReaders, [](auto& all) { (void)all.ask("x"); }},
      {"acquire", kNewerFence, [](auto& all) { (void)all.lock("x")->acquire(kSoon); }},
      {"read", kNewerFence, [](auto& all) { (void)all.lock("x")->acquire(kReadSoon); }},
      {"acquire", kNewerPermits, [](auto& all) { (void)all.semaphore("x", 3).acquire(1, kSoon); }},
      {"status", kNewerPermits, [](auto& all) { (void)all.semaphore_status("x"); }},
      {"list", kNewerPermits, [](auto& all) { throw_first(all, &LockManager::list_semaphores); }},
      {"evict", kNewerPermits, [](auto& all) { all.evict_permits("x", 17, {.at_once = true}); }},
      {"limit", kNewerPermits, [](auto& all) { all.set_semaphore("x", 4); }},
  };
  for (const auto& row : rows) {
    for (auto* manager : {&locks, &fair}) {
      SCOPED_TRACE(std::string(row.what) + " " + row.record.key);
      put(row.record);
      expect_refused(*manager, row.record.key, row.call);
      EXPECT_EQ(client().ask({"GET", row.record.key}).text, row.record.text);
      client().ask({"DEL", row.record.key});
    }
  }
}

TEST_F(RedisNewerFormat, AWaiterKeepsItsPlaceAndItsLock) {
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(server_.port(), "&poll=200ms"), warnings);
  auto fair = open("&fair=true&poll=200ms");
  auto held = locks.lock("x")->acquire();
  put_waiter();
  const auto is_waiting = [&] {
    return client().ask({"ZSCORE", "dlock:{x}%queue", kOtherWaiter}).text == "1" &&
           client().ask({"HGET", "dlock:{x}%alive", kOtherWaiter}).text == "v=2 by=clock";
  };
  const auto key = "dlock:{x}%alive";
  expect_refused(locks, key, [](auto& all) { (void)all.lock("x")->acquire(kSoon); });
  expect_refused(locks, key, [](auto& all) { (void)all.lock("x")->acquire(kReadSoon); });
  expect_refused(locks, key, [](auto& all) { (void)all.status("x"); });
  EXPECT_EQ(client().ask({"HLEN", key}).integer, 1) << "the refused waiters left";
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has(refusal(key)); }));
  EXPECT_EQ(exists("dlock:{x}"), 0);
  expect_refused(fair, key, [](auto& all) { (void)all.lock("x")->try_acquire(); });
  EXPECT_TRUE(is_waiting());
}

TEST_F(RedisNewerFormat, HoldersOfReplacedRecordsAreNotRenewedAndTheRecordsStay) {
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(server_.port(), "&lease=1s"), warnings);
  auto reader = locks.lock("x")->acquire(kReadSoon);
  auto permit = locks.semaphore("x", 3).acquire(1, kSoon);
  put(kNewerReaders);
  put(kNewerPermits);
  for (auto* handle : {&reader, &permit}) {
    EXPECT_TRUE(eventually(patience(), [&] { return handle->state() == HandleState::lost; }));
    EXPECT_EQ(handle->loss_reason(), LossReason::expired);
    EXPECT_EQ(handle->release(), errc::lock_lost);
  }
  EXPECT_EQ(client().ask({"GET", kNewerReaders.key}).text, kNewerReaders.text);
  EXPECT_EQ(client().ask({"GET", kNewerPermits.key}).text, kNewerPermits.text);
}

TEST_F(RedisNewerFormat, ARequestToReleaseIsRefusedAndWarnedOf) {
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(server_.port(), "&lease=1s"), warnings);
  auto held = locks.lock("x")->acquire({.wait = 20s, .revocable = true});
  client().ask({"SET", "dlock:{x}%ask", "v=2 who=other"});
  expect_refused(locks, "dlock:{x}%ask", [](auto& all) { (void)all.ask("x"); });
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has(refusal("dlock:{x}%ask")); }));
  EXPECT_EQ(client().ask({"GET", "dlock:{x}%ask"}).text, "v=2 who=other");
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_F(RedisNewerFormat, TheMarkOfABreakEndsTheHold) {
  auto locks = open("&lease=1s");
  auto held = locks.lock("x")->acquire();
  const auto value = client().ask({"GET", "dlock:{x}"}).text;
  client().ask({"SET", "dlock:{x}", "dlock:broken:v=2,what\n" + value, "PX", "60000"});
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::broken);
  EXPECT_THAT(held.broken_by(), HasSubstr(refusal("the mark of the break")));
}

}  // namespace
}  // namespace dlock::testkit

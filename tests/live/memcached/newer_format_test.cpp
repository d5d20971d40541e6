// SPDX-License-Identifier: Apache-2.0
//
// Records of a newer dlock: each call is refused with both formats, and the record stays as it is.
#include <gmock/gmock.h>

#include <functional>

#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

constexpr AcquireOptions kSoon{.wait = 20s};
constexpr auto kValue = "dlock=2\nwho=other\n";
constexpr auto kOther = "v=2 other";

class MemcachedNewerFormat : public MemcachedTest {
 protected:
  using Call = std::function<void(LockManager&)>;

  void put(const std::string& key, std::string_view value) {
    const auto stored =
        talk(port(), fmt::format("set {} 0 0 {}\r\n{}", key, value.size(), value), "\r\n");
    EXPECT_THAT(stored, HasSubstr("STORED"));
  }
  bool has(const std::string& key, std::string_view value) {
    return talk(port(), "get " + key, "END\r\n").find(value) != std::string::npos;
  }
  static void expect_refused(LockManager& locks, const std::string& key, const Call& call) {
    try {
      call(locks);
      ADD_FAILURE() << "not refused";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::newer_format) << error.what();
      EXPECT_THAT(error.what(),
                  HasSubstr(key + " has format 2; this program reads format 1; upgrade it"));
    }
  }
};

TEST_F(MemcachedNewerFormat, EachCallIsRefusedAndTheRecordStays) {
  auto locks = open_memcached(url());
  EXPECT_FALSE(locks.lock("first")->acquire(kSoon).release());
  const struct {
    const char* what;
    const char* key;
    const char* value;
    Call call;
  } rows[] = {
      {"status", "dlock:x", kValue, [](auto& all) { (void)all.status("x"); }},
      {"mark", "dlock:x", kValue, [](auto& all) { all.evict("x", 17); }},
      {"evict", "dlock:x", kValue, [](auto& all) { all.evict("x", 17, {.at_once = true}); }},
      {"acquire", "dlock:y%t", kOther, [](auto& all) { (void)all.lock("y")->acquire(kSoon); }},
      {"connect", "dlock:%list", kOther, [this](auto&) { open_memcached(url()).connect(); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    put(row.key, row.value);
    expect_refused(locks, row.key, row.call);
    EXPECT_TRUE(has(row.key, row.value));
    EXPECT_FALSE(has_key(port(), "dlock:y"));
    delete_key(port(), row.key);
  }
}

TEST_F(MemcachedNewerFormat, ALockIsHeldByTheOwnerOfANewerValue) {
  auto locks = open_memcached(url());
  put("dlock:x", kValue);
  EXPECT_FALSE(locks.lock("x")->try_acquire());
  EXPECT_FALSE(locks.lock("x")->try_acquire({.wait = 50ms}));
  EXPECT_TRUE(has("dlock:x", kValue));
}

}  // namespace
}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// URLs and options: what is taken, and what is refused with what to write instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/redis/options.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/redis.hpp"

namespace dlock::redis {
namespace {

using testing::HasSubstr;

LockManager open(const std::string& url) {
  OpenOptions options;
  options.backends = {&backend()};
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, std::move(options));
}

TEST(RedisOptions, Taken) {
  for (const char* url :
       {"redis://localhost", "redis://localhost:6380/3", "redis://localhost/",
        "redis://:secret@h/0?lease=100ms", "redis://user:p%2Fw@[::1]:6379",
        "rediss://h?tls_ca=/ca.pem&tls_verify=false", "redis+unix:///run/redis/redis.sock?db=2",
        "redis://h?key=%7Bname%7D&poll=50ms", "redis://h?key=redlock:%7Bname%7D",
        "redis://h?lock_delay=15s", "redis://h?fair=true", "redis://h?lock_delay=0",
        "redis://h?durability=appendfsync-always"}) {
    EXPECT_NO_THROW(open(url)) << url;
  }
}

TEST(RedisOptions, Refused) {
  const struct {
    const char* url;
    const char* says;
  } table[] = {
      {"redis://h/orders", "database number"},    {"redis://h/-1", "database number"},
      {"redis://h/3?db=4", "another database"},   {"redis://a,b", "one server"},
      {"redis://secret@h", ":password@"},         {"redis://h?key=locks", "exactly one {name}"},
      {"redis://h?lease=50ms", "too small"},      {"redis://h?lease=31d", "too large"},
      {"redis://h?tls_ca=/x", "rediss://"},       {"rediss://h?tls_cert=/x", "belong together"},
      {"redis://h?durability=yes", "durability"}, {"redis+unix://h/x.sock", "path"},
      {"redis+sentinel://h", "not built yet"},    {"redis+tls://h", "rediss://"},
      {"redis://h?colour=red", "unknown key"},    {"redis://h?lock_delay=61m", "too large"},
      {"redis://h?lock_delay=5", "no unit"},
  };
  for (const auto& row : table) {
    try {
      open(row.url);
      FAIL() << row.url;
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::config_invalid) << row.url;
      EXPECT_THAT(error.what(), HasSubstr(row.says)) << row.url;
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("secret"))) << row.url;
    }
  }
}

}  // namespace
}  // namespace dlock::redis

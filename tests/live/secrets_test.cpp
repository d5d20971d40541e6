// SPDX-License-Identifier: Apache-2.0
//
// No password comes out of the library: not in what it logs at any level, in an error, a status or
// a report, from servers that take the password and that do not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/live/hostile/hostile.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSecret = "Tr0ub4dor&3";
constexpr const char* kInUrl = "Tr0ub4dor%263";
/// As it is; percent-escaped once and twice; in base64, whatever stands before it; in hexadecimal.
const std::vector<std::string> kSpellings = {kSecret,          kInUrl,           "Tr0ub4dor%2526",
                                             "VHIwdWI0ZG9yJj", "RyMHViNGRvciYz", "cjB1YjRkb3ImM",
                                             "5472307562346"};

/// Everything that was said.
class Ears {
 public:
  void hear(std::string_view text) {
    const std::lock_guard lock(mutex_);
    all_.append(text).append("\n");
  }
  OpenOptions options() {
    auto options = OpenOptions::built_in();
    options.log = [this](LogLevel, std::string_view text) { hear(text); };
    return options;
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

template <class Ask>
void listen(Ears& ears, Ask ask) {
  try {
    ask();
  } catch (const LockError& error) {
    ears.hear(error.what());
    ears.hear(error.server_text());
    ears.hear(error.code().message());
  }
}

void hear_owner(Ears& ears, const Owner& owner) {
  for (const auto& text : {owner.id, owner.host, owner.app}) ears.hear(text);
}

void hear_status(Ears& ears, const LockStatus& status) {
  ears.hear(status.name);
  if (status.owner) hear_owner(ears, *status.owner);
  for (const auto& owner : status.waiting) hear_owner(ears, owner);
  for (const auto& note : status.notes) ears.hear(note);
}

/// Every operation; `during` comes while the lock is held. The count of grants.
int try_all(Ears& ears, const std::string& url, const std::function<void()>& during) {
  int grants = 0;
  listen(ears, [&] {
    auto locks = LockManager::open(url, ears.options());
    listen(ears, [&] { locks.connect(); });
    for (const auto& report : locks.inspect()) {
      ears.hear(report.message);
      if (!report.capabilities) continue;
      for (const auto& note : report.capabilities->notes) ears.hear(note);
    }
    auto lock = locks.lock("secret/1");
    Diagnostics diagnostics;
    error_code error;
    AcquireOptions options;
    options.wait = 1500ms;
    options.diagnostics = &diagnostics;
    auto handle = lock->acquire(options, {}, error);
    ears.hear(error.message());
    ears.hear(diagnostics.server_text);
    if (handle) ++grants;
    if (handle) {
      if (const auto sequencer = handle.sequencer()) ears.hear(sequencer->to_string());
    }
    listen(ears, [&] { hear_status(ears, locks.status("secret/1")); });
    listen(ears, [&] {
      for (const auto& status : locks.list()) hear_status(ears, status);
    });
    listen(ears, [&] { locks.evict("secret/1", 1, {.at_once = true}); });
    during();
    listen(ears, [&] { hear_status(ears, locks.status("secret/1")); });
  });
  return grants;
}

class Secrets : public testing::Test {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override {
    ears_.hear(testing::internal::GetCapturedStderr());
    const auto all = ears_.all();
    EXPECT_GT(all.size(), 200U) << "nothing was heard";
    for (const auto& spelling : kSpellings) {
      EXPECT_EQ(all.find(spelling), std::string::npos) << spelling << " in: " << all;
    }
  }
  Ears ears_;
};

std::string redis_url(const RedisServer& server, std::string_view login) {
  return fmt::format("redis://{}@127.0.0.1:{}/0?{}", login, server.port(), hostile::kImpatient);
}

TEST_F(Secrets, OfRedis) {
  RedisServer server;
  server.start();
  const auto say = [&](const std::string& line) {
    return ask(server.port(), line + "\r\n", "\n", patience());
  };
  ASSERT_EQ(say(fmt::format("ACL SETUSER app on >{} ~* &* +@all", kSecret)), "+OK\r\n");
  ASSERT_EQ(say("ACL SETUSER other on >another ~* &* +@all"), "+OK\r\n");
  ASSERT_EQ(say(fmt::format("CONFIG SET requirepass {}", kSecret)), "+OK\r\n");
  const auto none = [] {};
  EXPECT_EQ(try_all(ears_, redis_url(server, fmt::format(":{}", kInUrl)), none), 1);
  EXPECT_EQ(try_all(ears_, redis_url(server, fmt::format("app:{}", kInUrl)), none), 1);
  // The same password, of somebody whom the server does not know; then of one with another one.
  EXPECT_EQ(try_all(ears_, redis_url(server, fmt::format("nobody:{}", kInUrl)), none), 0);
  EXPECT_EQ(try_all(ears_, redis_url(server, fmt::format("other:{}", kInUrl)), none), 0);
  EXPECT_EQ(try_all(ears_, redis_url(server, fmt::format(":{}", kInUrl)), [&] { server.stop(); }),
            1);
}

TEST_F(Secrets, OfZooKeeper) {
  ZooKeeperServer server;
  server.start();
  const auto url = [&](std::string_view login) {
    return fmt::format("zookeeper://{}@127.0.0.1:{}/app?acl=creator&{}", login, server.port(),
                       hostile::kImpatient);
  };
  EXPECT_EQ(try_all(ears_, url("app:another"), [] {}), 1);
  // The nodes belong to who has the other password.
  EXPECT_EQ(try_all(ears_, url(fmt::format("app:{}", kInUrl)), [] {}), 0);
  EXPECT_EQ(try_all(ears_, url("app:another"), [] {}), 1);
  auto own = url(fmt::format("app:{}", kInUrl));
  own.replace(own.find("/app?"), 5, "/mine?");
  EXPECT_EQ(try_all(ears_, own, [&] { server.stop(); }), 1);
}

}  // namespace
}  // namespace dlock::testkit

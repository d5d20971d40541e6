// SPDX-License-Identifier: Apache-2.0
//
// Very many locks and waiters of one process, and one link that is reset under them: none may be
// lost. The sizes are beyond what one packet of a server's jute.maxbuffer has room for (13,900
// watches); DLOCK_MANY sets another one, 20000 for the long form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "dlock/async.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::testkit {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kShare = 8;
#else
constexpr std::size_t kShare = 1;
#endif

std::size_t many(std::size_t usual) {
  const char* given = std::getenv("DLOCK_MANY");
  return given == nullptr ? usual / kShare : static_cast<std::size_t>(std::atol(given));
}

long resident_mb() {
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return resident * 4096 / 1'000'000;
}

/// Handles that came, in the order of their coming.
class Crowd {
 public:
  void acquire(LockManager& locks, const std::string& name) {
    locks.lock(name)->async_acquire({.wait = 600s}, [this](error_code ec, LockHandle handle) {
      const std::lock_guard guard(mutex_);
      if (ec) {
        ++errors_;
        error_ = ec.message();
        return;
      }
      handle.on_state([this](HandleState state, LossReason reason) {
        if (state != HandleState::lost) return;
        const std::lock_guard lost(mutex_);
        ++lost_;
        reason_ = reason;
      });
      handles_.push_back(std::move(handle));
    });
  }
  std::size_t size() {
    const std::lock_guard guard(mutex_);
    return handles_.size();
  }
  std::size_t errors() {
    const std::lock_guard guard(mutex_);
    return errors_;
  }
  std::string error() {
    const std::lock_guard guard(mutex_);
    return error_;
  }
  std::size_t lost() {
    const std::lock_guard guard(mutex_);
    return lost_;
  }
  LossReason reason() {
    const std::lock_guard guard(mutex_);
    return reason_;
  }
  /// All that came so far; how many of the releases failed.
  std::size_t release() {
    std::vector<LockHandle> handles;
    {
      const std::lock_guard guard(mutex_);
      handles.swap(handles_);
    }
    std::atomic<std::size_t> done{0};
    std::atomic<std::size_t> failed{0};
    for (auto& handle : handles) {
      async_release(handle, [&](error_code ec) {
        if (ec) ++failed;
        ++done;
      });
    }
    EXPECT_TRUE(eventually(within(300s), [&] { return done == handles.size(); }));
    return failed;
  }

 private:
  std::mutex mutex_;
  std::vector<LockHandle> handles_;
  std::size_t errors_ = 0;
  std::string error_;
  std::size_t lost_ = 0;
  LossReason reason_{};
};

class ZooKeeperMany : public testing::Test {
 protected:
  void SetUp() override {
    server_.start();
    proxy_.emplace(server_.port());
  }
  LockManager open(std::uint16_t port) {
    return open_zookeeper(url_of({port}, "/app?session_timeout=10s&release_timeout=300s"));
  }
  static std::string name(std::size_t number) { return "many/" + std::to_string(number); }
  /// Of all sessions.
  long watches() const {
    const auto words = server_.four_letter("wchs");
    const auto at = words.find("Total watches:");
    return at == std::string::npos ? 0 : std::atol(words.c_str() + at + 14);
  }
  void say(const char* what) {
    const auto now = Clock::now();
    const auto stats = proxy_->stats();
    std::printf("%-38s %6.2f s, %4ld MB, sent %6.1f MB, received %6.1f MB\n", what,
                std::chrono::duration<double>(now - since_).count(), resident_mb(),
                static_cast<double>(stats.to_server.bytes) / 1e6,
                static_cast<double>(stats.to_client.bytes) / 1e6);
    std::fflush(stdout);
    since_ = now;
  }

  ZooKeeperServer server_{{.tick = 500ms, .java_options = {"-Xmx512m"}}};
  std::optional<FaultProxy> proxy_;
  Clock::time_point since_ = Clock::now();
};

TEST_F(ZooKeeperMany, F60_HeldLocksSurviveALinkReset) {
  const auto count = many(15'000);
  Crowd held;
  auto locks = open(proxy_->port());
  locks.connect();
  say("connected");
  for (std::size_t i = 0; i < count; ++i) held.acquire(locks, name(i));
  ASSERT_TRUE(eventually(within(300s), [&] { return held.size() + held.errors() == count; }))
      << held.size() << " of " << count << ", errors " << held.errors();
  ASSERT_EQ(held.errors(), 0U) << held.error();
  say("held, all asked for at once");
  const auto wanted = static_cast<long>(count);
  ASSERT_TRUE(eventually(within(60s), [&] { return watches() > wanted; })) << watches();
  say("each watches its own node");
  for (int reset = 0; reset < 2; ++reset) {
    proxy_->drop_all();
    ASSERT_TRUE(eventually(within(5s), [&] { return watches() < wanted; }));
    ASSERT_TRUE(eventually(within(60s), [&] { return watches() > wanted || held.lost() > 0; }));
    ASSERT_EQ(held.lost(), 0U) << watches() << " watched";
    say("a link reset, and all watched again");
  }
  EXPECT_EQ(held.lost(), 0U);
  // Still told, and quickly, which one an operator took away.
  BareClient client(server_.port(), 10s);
  const auto path = "/app/" + name(count / 2);
  ASSERT_TRUE(client.remove(path + "/" + client.children(path).at(0)));
  EXPECT_TRUE(eventually(within(5s), [&] { return held.lost() == 1; }));
  EXPECT_EQ(held.reason(), LossReason::removed);
  say("one taken away and told");
  EXPECT_EQ(held.release(), 1U) << "all but the one that was taken away";
  EXPECT_EQ(held.lost(), 1U);
  say("released");
  locks.close();
}

TEST_F(ZooKeeperMany, ALockIsRenewedAgainOnceItsWatchIsSetAgain) {
  DirectClient client(url_of({proxy_->port()}, "/app?session_timeout=10s"));
  std::vector<ClaimPtr> held;
  while (held.size() < 1200) held.push_back(client.acquire(name(held.size())));
  const auto renew = [&] {
    return client.run(client.backend().extend(held, DirectClient::soon()));
  };
  const auto wanted = static_cast<long>(held.size());
  ASSERT_TRUE(eventually(within(60s), [&] { return watches() > wanted; })) << watches();
  proxy_->delay(Direction::to_client, 300ms);
  proxy_->drop_all();
  std::vector<ExtendAnswer> after;
  ASSERT_TRUE(eventually(within(30s), [&] {
    after = renew();
    return after.front().status == ExtendStatus::extended;
  }));
  // 512 watches are asked for before the first renewal, and no other.
  const auto soon = BoottimeClock::now() + 250ms;
  const auto is_due = [&](const ExtendAnswer& answer) { return answer.validity.renew_at <= soon; };
  EXPECT_EQ(std::ranges::count_if(after, is_due), wanted - 512);
  EXPECT_TRUE(eventually(within(30s), [&] {
    const auto later = BoottimeClock::now() + 1s;
    return std::ranges::all_of(
        renew(), [&](const ExtendAnswer& answer) { return answer.validity.renew_at > later; });
  }));
}

TEST_F(ZooKeeperMany, F60_WaitersOfManyNamesSurviveALinkReset) {
  const auto count = many(8'000);
  Crowd before;
  Crowd waiters;
  auto first = open(server_.port());
  auto locks = open(proxy_->port());
  locks.connect();
  for (std::size_t i = 0; i < count; ++i) before.acquire(first, name(i));
  ASSERT_TRUE(eventually(within(300s), [&] { return before.size() == count; })) << before.error();
  ASSERT_TRUE(eventually(within(60s), [&] { return watches() > static_cast<long>(count); }));
  say("held by another");
  for (std::size_t i = 0; i < count; ++i) waiters.acquire(locks, name(i));
  // Its own node and the one before it, each.
  const auto wanted = static_cast<long>(3 * count);
  ASSERT_TRUE(eventually(within(300s), [&] { return watches() > wanted; })) << watches();
  say("waiting, all asked for at once");
  proxy_->drop_all();
  ASSERT_TRUE(eventually(within(5s), [&] { return watches() < wanted; }));
  // Whose turn comes while the watches are set again, too.
  EXPECT_EQ(before.release(), 0U);
  ASSERT_TRUE(eventually(within(300s), [&] { return waiters.size() == count; }))
      << waiters.size() << ", errors " << waiters.errors() << " " << waiters.error();
  say("a link reset, and all served");
  EXPECT_EQ(waiters.errors(), 0U) << waiters.error();
  EXPECT_EQ(waiters.lost(), 0U);
  EXPECT_EQ(waiters.release(), 0U);
  say("released");
  locks.close();
  first.close();
}

TEST_F(ZooKeeperMany, F59_ContendersOfOneProcessForOneLockAreServed) {
  const auto count = many(3'000);
  auto other = open(server_.port());
  auto locks = open(proxy_->port());
  locks.connect();
  auto holder = other.lock("one")->acquire();
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> failed{0};
  std::atomic<std::size_t> released{0};
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<std::uint64_t> last_token{0};
  std::atomic<std::size_t> backwards{0};
  for (std::size_t i = 0; i < count; ++i) {
    locks.lock("one")->async_acquire({.wait = 600s}, [&](error_code ec, LockHandle handle) {
      if (ec) {
        ++failed;
        return;
      }
      if (++inside != 1) ++overlaps;
      const auto token = handle.token().value_or(0);
      if (last_token.exchange(token) >= token) ++backwards;
      ++granted;
      --inside;
      auto kept = std::make_shared<LockHandle>(std::move(handle));
      async_release(*kept, [&, kept](error_code why) {
        if (why) ++failed;
        ++released;
      });
    });
  }
  const auto wanted = static_cast<long>(count + 3);
  ASSERT_TRUE(eventually(within(300s), [&] { return watches() >= wanted; })) << watches();
  say("waiting, all asked for at once");
  EXPECT_LT(proxy_->stats().to_client.bytes, count * 20'000) << "each listed all the others";
  proxy_->drop_all();
  ASSERT_TRUE(eventually(within(5s), [&] { return watches() < wanted; }));
  ASSERT_TRUE(eventually(within(60s), [&] { return watches() >= wanted; })) << watches();
  say("a link reset, and all watched again");
  EXPECT_FALSE(holder.release());
  ASSERT_TRUE(eventually(within(300s), [&] { return released + failed >= count; }))
      << granted << " granted, " << released << " released";
  say("served, one after the other");
  EXPECT_EQ(granted, count);
  EXPECT_EQ(failed, 0U);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(backwards, 0U);
  locks.close();
}

// A listing of more than a server's jute.maxbuffer; who waits at its end stays connected.
TEST_F(ZooKeeperMany, F59_AQueueLongerThanAPacketIsWaitedIn) {
  BareClient client(server_.port(), 10s);
  client.create("/app", {}, zookeeper::Client::Mode::persistent);
  client.create("/app/long", {}, zookeeper::Client::Mode::persistent);
  // Names of 200 bytes and more, as other programs write them.
  const std::string head = "/app/long/" + std::string(190, 'x') + "-lock-";
  const std::size_t count = 5'500 / kShare;
  for (std::size_t i = 0; i < count; ++i) ASSERT_NE(client.create(head), "");
  auto locks = open(proxy_->port());
  locks.connect();
  say("a queue of a megabyte");
  error_code ec;
  EXPECT_FALSE(locks.lock("long")->acquire({.wait = 3s}, {}, ec));
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
  EXPECT_LE(proxy_->stats().connections, 3U) << "it reconnects again and again";
  EXPECT_GE(locks.status("long").waiting.size(), std::min<std::size_t>(count - 1, 999));
  say("waited in, and shown");
}

}  // namespace
}  // namespace dlock::testkit

// SPDX-License-Identifier: Apache-2.0
//
// Each operation of a backend whose server is gone: it ends by its deadline, did nothing or perhaps
// something, and says why. When the server is back, the operations work again.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/options.hpp"
#include "core/loop/real_env.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/event_sink.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 200ms;

struct Quiet final : EventSink {
  void on_link_up() override { ++ups; }
  void on_link_down(const Failure& why) override {
    EXPECT_TRUE(why.error);
    ++downs;
  }
  void on_session_gone(LossReason) override {}
  void on_claim_gone(const ClaimPtr&, LossReason) override {}
  void on_capabilities_changed() override {}
  void on_warning(std::string_view) override {}

  int ups = 0;
  int downs = 0;
};

class Driven {
 public:
  explicit Driven(const std::string& url) {
    StoreConfig config;
    config.url = url;
    const auto options = OpenOptions::built_in();
    const auto resolved = core::resolve_store(config, options.backends);
    backend_ = resolved.backend->create(resolved.options, env_, sink_);
  }
  ~Driven() { run(backend_->close(in(5s))); }
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  TimePoint in(Duration duration) { return env_.now() + duration; }
  Backend& backend() { return *backend_; }
  MigrationStore& migration() { return backend_->migration(); }
  const Quiet& heard() const { return sink_; }

  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    asio::co_spawn(env_.executor(), std::move(task),
                   [&result](const std::exception_ptr& error, T value) {
                     if (error) std::rethrow_exception(error);
                     result = std::move(value);
                   });
    EXPECT_TRUE(run_until([&] { return result.has_value(); }));
    return std::move(result).value();
  }
  void run(asio::awaitable<void> task) {
    bool done = false;
    asio::co_spawn(env_.executor(), std::move(task),
                   [&done](const std::exception_ptr&) { done = true; });
    EXPECT_TRUE(run_until([&] { return done; }));
  }
  bool run_until(const std::function<bool()>& met) {
    const auto end = in(30s);
    while (!met() && env_.now() < end) {
      env_.context().restart();
      env_.context().run_one_for(20ms);
    }
    return met();
  }

  ClaimPtr make(const std::string& name, std::uint32_t permits = 0) {
    ClaimRequest request;
    request.name = name;
    request.owner = Owner{make_uuid(env_), "host", 1, "test"};
    request.lease = 5s;
    request.queue = false;
    request.permits = permits;
    request.limit = permits;
    if (permits > 0) request.mode = Mode::shared;
    return backend_->make_claim(std::move(request));
  }
  ClaimAnswer claim(const ClaimPtr& claim, Duration patience) {
    return run(backend_->claim(claim, in(patience)));
  }

 private:
  core::RealEnv env_;
  Quiet sink_;
  std::unique_ptr<Backend> backend_;
};

/// An answer in short: whether it was surely not done or is not known, and why.
struct Ended {
  bool is_open = false;  ///< the answer is not that it was done
  Failure failure;
};

template <class Answer>
Ended plain(Answer answer) {
  return {!answer.value.has_value(), std::move(answer.failure)};
}
Ended of_record(RecordAnswer answer) {
  const bool is_open = answer.status == RecordStatus::unavailable ||
                       answer.status == RecordStatus::unknown ||
                       answer.status == RecordStatus::failed;
  return {is_open, std::move(answer.failure)};
}

/// Calls all operations; `held` was granted before.
std::map<std::string, Ended> call_all(Driven& store, const ClaimPtr& held) {
  auto& backend = store.backend();
  auto& migration = store.migration();
  const auto until = [&] { return store.in(kPatience); };
  std::map<std::string, Ended> all;
  const auto time = [&](const char* name, const std::function<Ended()>& call) {
    const auto begun = std::chrono::steady_clock::now();
    all[name] = call();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience + 2s) << name;
  };
  time("claim", [&] {
    auto answer = store.claim(store.make("another"), kPatience);
    return Ended{answer.status == ClaimStatus::unavailable || answer.status == ClaimStatus::unknown,
                 std::move(answer.failure)};
  });
  time("claim of permits", [&] {
    auto answer = store.claim(store.make("some", 3), kPatience);
    return Ended{answer.status == ClaimStatus::unavailable || answer.status == ClaimStatus::unknown,
                 std::move(answer.failure)};
  });
  time("extend", [&] {
    std::vector<ClaimPtr> claims{held};
    auto answers = store.run(backend.extend(std::move(claims), until()));
    EXPECT_EQ(answers.size(), 1U);
    return Ended{answers.at(0).status != ExtendStatus::extended, std::move(answers[0].failure)};
  });
  time("inspect", [&] { return plain(store.run(backend.inspect("held", until()))); });
  time("list", [&] { return plain(store.run(backend.list("", until()))); });
  time("evict", [&] {
    EvictRequest request;
    request.name = "held";
    request.token = 1;
    auto answer = store.run(backend.evict(std::move(request), until()));
    return Ended{!answer.is_free, std::move(answer.failure)};
  });
  time("ask", [&] {
    auto answer = store.run(backend.ask("held", 0, {"me", 1s}, until()));
    return Ended{answer.heard != Heard::yes, std::move(answer.failure)};
  });
  time("inspect_semaphore",
       [&] { return plain(store.run(backend.inspect_semaphore("some", until()))); });
  time("list_semaphores", [&] { return plain(store.run(backend.list_semaphores("", until()))); });
  time("set_limit", [&] { return Ended{true, store.run(backend.set_limit("some", 5, until()))}; });
  time("evict_permits", [&] {
    EvictRequest request;
    request.name = "some";
    request.token = 1;
    auto answer = store.run(backend.evict_permits(std::move(request), until()));
    return Ended{!answer.is_free, std::move(answer.failure)};
  });
  time("record", [&] { return of_record(store.run(migration.record("held", until()))); });
  time("seal", [&] { return of_record(store.run(migration.seal(held, "text", until()))); });
  time("set_record",
       [&] { return of_record(store.run(migration.set_record("held", "a", "b", 0, until()))); });
  time("raise", [&] { return of_record(store.run(migration.raise(held, 1000, until()))); });
  time("note", [&] { return of_record(store.run(migration.note("key", until()))); });
  time("set_note",
       [&] { return of_record(store.run(migration.set_note("key", {}, "text", until()))); });
  time("time", [&] { return plain(store.run(migration.time(until()))); });
  time("highest_token", [&] { return plain(store.run(migration.highest_token(until()))); });
  time("claimed_names", [&] { return plain(store.run(migration.claimed_names("", until()))); });
  time("release", [&] {
    auto answer = store.run(backend.release(held, false, until()));
    return Ended{
        answer.status == ReleaseStatus::unavailable || answer.status == ReleaseStatus::unknown,
        std::move(answer.failure)};
  });
  return all;
}

/// Takes a lock, lets the server go, and calls all operations; then all is well again.
void check(const std::string& url, const std::function<void()>& stop,
           const std::function<void()>& start) {
  Driven store(url);
  const auto failure = store.run(store.backend().connect(store.in(20s)));
  ASSERT_FALSE(failure.error) << failure.error.message() << " " << failure.text;
  const auto held = store.make("held");
  ASSERT_EQ(store.claim(held, 10s).status, ClaimStatus::granted);
  stop();
  ASSERT_TRUE(store.run_until([&] { return store.heard().downs > 0; }));
  for (const auto& [name, ended] : call_all(store, held)) {
    EXPECT_TRUE(ended.is_open) << name;
    EXPECT_TRUE(ended.failure.error) << name << " does not say why";
  }
  EXPECT_TRUE(store.backend().link_failure().error);
  const auto reports = store.run(store.backend().self_test(store.in(kPatience)));
  for (const auto& report : reports) {
    bool any = false;
    for (const auto& step : report.steps)
      any = any || step.result != SelfTestReport::Result::passed;
    EXPECT_TRUE(any) << "a step passed without a server";
  }
  start();
  ASSERT_TRUE(store.run_until([&] { return store.heard().ups > 0; }));
  EXPECT_EQ(store.claim(store.make("after"), 10s).status, ClaimStatus::granted);
  EXPECT_TRUE(store.run(store.backend().list("", store.in(10s))).value);
}

TEST(GoneServer, Redis) {
  testkit::RedisServer server;
  server.start();
  check(
      server.url() + "?lease=10s", [&] { server.kill9(); }, [&] { server.start(); });
}

TEST(GoneServer, ZooKeeper) {
  testkit::ZooKeeperServer server;
  server.start();
  const auto url = "zookeeper://127.0.0.1:" + std::to_string(server.port()) + "/dlock";
  check(
      url + "?session_timeout=10s", [&] { server.kill9(); }, [&] { server.start(); });
}

TEST(GoneServer, Memcached) {
  testkit::MemcachedServer server;
  server.start();
  const auto url = "memcached://127.0.0.1:" + std::to_string(server.port());
  Driven store(url + "?lease=10s");
  ASSERT_FALSE(store.run(store.backend().connect(store.in(20s))).error);
  const auto held = store.make("held");
  ASSERT_EQ(store.claim(held, 10s).status, ClaimStatus::granted);
  server.kill9();
  for (const auto& [name, ended] : call_all(store, held)) {
    EXPECT_TRUE(ended.is_open) << name;
    EXPECT_TRUE(ended.failure.error) << name << " does not say why";
  }
}

}  // namespace
}  // namespace dlock

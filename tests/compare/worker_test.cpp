// SPDX-License-Identifier: Apache-2.0
//
// The worker's programs, driven line by line on real servers: each answer, field by field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/sockets.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::array;
using boost::json::object;
using testkit::within;
using namespace std::chrono_literals;

/// Servers of all stores. The cases use locks with different names.
struct Servers {
  Servers() {
    redis.start();
    memcached.start();
    zookeeper.start();
  }
  std::string url(std::string_view store, std::string_view lease = "2s") const {
    const auto address = [](int port) { return "127.0.0.1:" + std::to_string(port); };
    const std::string time(lease);
    if (store == "redis") return "redis://" + address(redis.port()) + "/0?lease=" + time;
    if (store == "memcached") return "memcached://" + address(memcached.port()) + "?lease=3s";
    if (store == "zookeeper") {
      return "zookeeper://" + address(zookeeper.port()) + "/dlock?session_timeout=" + time;
    }
    return "file://" + (folder / "locks").string();
  }

  testkit::RedisServer redis;
  testkit::MemcachedServer memcached;
  testkit::ZooKeeperServer zookeeper;
  testkit::TempDir folder;
};

class Worker {
 public:
  explicit Worker(const std::string& line) : process_({.argv = {DLOCK_COMMAND, "worker"}}) {
    process_.write(line + "\n");
  }
  explicit Worker(const object& job) : Worker(boost::json::serialize(job)) {}

  /// Returns the next event; an empty object at the end of output.
  object next(std::chrono::seconds patience = 20s) {
    const auto line = process_.read_line(within(patience));
    return line ? boost::json::parse(*line).as_object() : object();
  }
  /// Skips `extended`, whose number depends on the time.
  object await(std::string_view event) {
    object found;
    do found = next();
    while (!found.empty() && found.at("event") == "extended");
    EXPECT_FALSE(found.empty()) << "no '" << event << "'; " << process_.collected_stderr();
    if (!found.empty()) {
      EXPECT_EQ(found.at("event").as_string(), event) << found;
    }
    return found;
  }
  object go() {
    command("go");
    return await("result");
  }
  void command(const std::string& line) { process_.write(line + "\n"); }
  testkit::Process& process() { return process_; }
  int end() {
    process_.close_stdin();
    const auto status = process_.wait(within(30s));
    return status ? status->shell_status() : -1;
  }

 private:
  testkit::Process process_;
};

std::int64_t number(const boost::json::value& value) { return value.to_number<std::int64_t>(); }

class CompareWorker : public testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<Servers>(); }
  static void TearDownTestSuite() { servers_.reset(); }

  static object job(const char* program, const char* driver, std::string_view store) {
    static int last = 0;
    return {{"program", program},
            {"driver", driver},
            {"url", servers_->url(store)},
            {"lock", "worker/" + std::to_string(++last)}};
  }
  static std::string ask_redis(const std::string& command) {
    return testkit::ask(servers_->redis.port(), command + "\r\n", "\r\n", within(5s));
  }

  static inline std::unique_ptr<Servers> servers_;
};

constexpr const char* kStores[] = {"local", "redis", "memcached", "zookeeper"};
constexpr const char* kDrivers[] = {"dlock", "floor"};

template <class Case>
void on_each(Case&& one) {
  for (const char* store : kStores) {
    for (const char* driver : kDrivers) {
      SCOPED_TRACE(std::string(driver) + " on " + store);
      one(driver, store);
    }
  }
}

TEST_F(CompareWorker, SaysWhyItCannotDoAJob) {
  const auto why = [](const object& job) {
    Worker worker(job);
    const auto said = worker.await("failed");
    EXPECT_EQ(worker.end(), 1);
    return said.empty() ? std::string() : std::string(said.at("why").as_string());
  };
  EXPECT_EQ(why({{"program", "nothing"}}), "no program nothing");
  EXPECT_EQ(why(job("pairs", "ceiling", "local")), "no driver 'ceiling'");
  EXPECT_EQ(why(job("tasks", "floor", "local")), "this driver has no tasks");
  auto sharing = job("share", "floor", "local");
  EXPECT_EQ(why(sharing), "this driver has no readers");
  sharing["permits"] = 1;
  EXPECT_EQ(why(sharing), "this driver has no semaphores");
  auto memory = job("pairs", "floor", "local");
  memory["url"] = "memory://x";
  EXPECT_EQ(why(memory), "no floor for memory://");
  auto guard = job("guard", "naive", "local");
  guard["resource"] = (servers_->folder / "none").string();
  EXPECT_EQ(why(guard), "cannot reach the guarded resource");
  guard["resource"] = std::string(200, 'x');
  EXPECT_EQ(why(guard), "path too long: " + std::string(200, 'x'));
  auto unreachable = job("inspect", "dlock", "local");
  unreachable["url"] = "redis://127.0.0.1:1/0";
  EXPECT_THAT(why(unreachable), testing::StartsWith("cannot reach the store: "));
}

TEST_F(CompareWorker, EndsWithoutAJob) {
  testkit::Process worker({.argv = {DLOCK_COMMAND, "worker"}});
  worker.close_stdin();
  ASSERT_TRUE(worker.wait(within(10s)));
  EXPECT_EQ(worker.unread_stdout(),
            R"({"event":"failed","why":"there is no job on standard input"})"
            "\n");
}

TEST_F(CompareWorker, InspectsWhatAStoreDeclares) {
  Worker local(job("inspect", "dlock", "local"));
  const auto files = local.await("result");
  EXPECT_EQ(files.at("backend"), "local");
  EXPECT_EQ(files.at("guarantee"), "exclusive");
  EXPECT_EQ(files.at("fair"), true);
  EXPECT_EQ(files.at("token"), "durable");
  Worker redis(job("inspect", "dlock", "redis"));
  const auto leases = redis.await("result");
  EXPECT_EQ(leases.at("lease_ms"), 2000);
  EXPECT_EQ(leases.at("permits"), true);
  EXPECT_EQ(leases.at("shared_mode"), true);
  EXPECT_FALSE(leases.at("assumptions").as_array().empty());
  EXPECT_FALSE(leases.at("shortfalls").as_array().empty());
  EXPECT_FALSE(leases.at("assumptions").at(0).at(1).as_string().empty());
}

TEST_F(CompareWorker, CountsThePairsOfEachClientAfterTheWarmUp) {
  on_each([](const char* driver, const char* store) {
    auto one = job("pairs", driver, store);
    one["clients"] = 3;
    one["count"] = 4;
    Worker worker(one);
    worker.await("ready");
    for (int slice = 0; slice < 2; ++slice) {
      const auto result = worker.go();
      EXPECT_EQ(number(result.at("pairs")), 12);
      EXPECT_EQ(number(result.at("pair").at("count")), 12);
      EXPECT_EQ(number(result.at("acquire").at("count")), 12);
      const auto mean = [&](const char* name) {
        return result.at(name).at("mean_us").to_number<double>();
      };
      EXPECT_GT(mean("acquire"), 0);
      EXPECT_GT(mean("pair"), mean("acquire"));
      EXPECT_LT(mean("pair") * 4, result.at("seconds").to_number<double>() * 1e6 + 1);
      EXPECT_GE(result.at("cpu_seconds").to_number<double>(), 0);
    }
    EXPECT_EQ(worker.end(), 0);
  });
}

TEST_F(CompareWorker, MeasuresPairsForTheWholeDuration) {
  auto one = job("pairs", "floor", "local");
  one["duration_ms"] = 300;
  Worker worker(one);
  worker.await("ready");
  const auto result = worker.go();
  const auto seconds = result.at("seconds").to_number<double>();
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 0.9);
  EXPECT_GT(number(result.at("pairs")), 20);
}

TEST_F(CompareWorker, TasksHaveALockEach) {
  for (const char* store : kStores) {
    SCOPED_TRACE(store);
    auto one = job("tasks", "dlock", store);
    one["clients"] = 5;
    one["duration_ms"] = 0;
    Worker worker(one);
    worker.await("ready");
    const auto result = worker.go();
    EXPECT_GE(number(result.at("pairs")), 5);
    EXPECT_EQ(result.at("pairs"), result.at("pair").at("count"));
    EXPECT_EQ(result.at("pairs"), result.at("acquire").at("count"));
    EXPECT_EQ(worker.end(), 0);
  }
}

TEST_F(CompareWorker, RequestsAreDueByTheClock) {
  auto one = job("open", "dlock", "local");
  one["rate"] = 50;
  one["duration_ms"] = 200;
  Worker worker(one);
  worker.await("ready");
  const auto start = testkit::Clock::now();
  const auto result = worker.go();
  EXPECT_GE(testkit::Clock::now() - start, 180ms);  // the tenth is due after nine pauses
  EXPECT_EQ(number(result.at("rate")), 50);
  EXPECT_EQ(number(result.at("acquire").at("count")), 10);
}

struct Row {
  std::int64_t client, asked, got, gave, reads;
};

std::vector<Row> rows_of(const object& result, std::size_t fields) {
  std::vector<Row> rows;
  for (const auto& grant : result.at("grants").as_array()) {
    EXPECT_EQ(grant.as_array().size(), fields);
    rows.push_back({number(grant.at(0)), number(grant.at(1)), number(grant.at(2)),
                    number(grant.at(3)), fields > 4 ? number(grant.at(4)) : 0});
    EXPECT_LE(rows.back().asked, rows.back().got);
    EXPECT_GE(rows.back().gave - rows.back().got, 1'000'000) << "it is held for a millisecond";
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.got < b.got; });
  return rows;
}

/// How many are held at the same time at most.
int together(const std::vector<Row>& rows) {
  int most = 0;
  for (const auto& row : rows) {
    most = std::max(most,
                    static_cast<int>(std::count_if(rows.begin(), rows.end(), [&](const Row& other) {
                      return other.got <= row.got && row.got < other.gave;
                    })));
  }
  return most;
}

TEST_F(CompareWorker, ContendersHoldOneLockInTurn) {
  on_each([](const char* driver, const char* store) {
    auto one = job("contend", driver, store);
    one["clients"] = 3;
    one["max_turns"] = 4;
    one["hold_us"] = 1000;
    one["duration_ms"] = 20'000;
    Worker worker(one);
    worker.await("ready");
    for (int slice = 0; slice < 2; ++slice) {
      const auto rows = rows_of(worker.go(), 4);
      EXPECT_EQ(rows.size(), 12U);
      for (std::int64_t client = 0; client < 3; ++client) {
        EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                                [&](const Row& row) { return row.client == client; }),
                  4);
      }
      EXPECT_EQ(together(rows), 1);
    }
    EXPECT_EQ(worker.end(), 0);
  });
}

TEST_F(CompareWorker, SharersReadTogetherWriteAloneAndKeepTheLimit) {
  const auto share = [](const char* field, std::int64_t value, std::int64_t clients) {
    auto one = job("share", "dlock", "redis");
    one["clients"] = clients;
    one["duration_ms"] = 300;
    one[field] = value;
    Worker worker(one);
    worker.await("ready");
    return rows_of(worker.go(), 5);
  };
  const auto reads = [](const std::vector<Row>& rows) {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.reads == 1; }));
  };
  const auto readers = share("readers_percent", 100, 3);
  EXPECT_EQ(reads(readers), readers.size());
  EXPECT_EQ(together(readers), 3);
  const auto writers = share("readers_percent", 0, 3);
  EXPECT_EQ(reads(writers), 0U);
  EXPECT_EQ(together(writers), 1);
  const auto mixed = share("readers_percent", 50, 1);
  EXPECT_GT(reads(mixed), 0U);
  EXPECT_LT(reads(mixed), mixed.size());
  const auto permits = share("permits", 2, 4);
  EXPECT_EQ(reads(permits), 0U);
  EXPECT_EQ(together(permits), 2);
}

/// Runs a crowd of five until it is there, and what `look` says of it then.
template <class Look>
void with_crowd(object one, const char* of, Look&& look) {
  one["of"] = of;
  one["count"] = 5;
  Worker worker(one);
  worker.await("ready");
  worker.command("go");
  worker.await("there");
  look();
  worker.command("stop");
  worker.await("result");
  EXPECT_EQ(worker.end(), 0);
}

TEST_F(CompareWorker, ACrowdIsThereUntilItIsStopped) {
  on_each([](const char* driver, const char* store) {
    with_crowd(job("crowd", driver, store), "holders", [] {});
    with_crowd(job("crowd", driver, store), "waiters", [] {});
  });
}

TEST_F(CompareWorker, TheFloorsCrowdsOnRedisAreSeenAndRenewed) {
  with_crowd(job("crowd", "floor", "redis"), "waiters", [] {
    EXPECT_TRUE(testkit::eventually(within(5s), [] {
      const auto channels =
          testkit::ask(servers_->redis.port(), "PUBSUB CHANNELS w:*\r\n", "w:4", within(1s));
      return channels.starts_with("*5\r\n");
    }));
  });
  with_crowd(job("crowd", "floor", "redis"), "holders", [] {
    for (const char* key : {"0", "4"}) {
      const auto left = [&] {
        return std::stoi(ask_redis(std::string("PTTL floor:many:") + key).substr(1));
      };
      EXPECT_GT(left(), 0);
      EXPECT_LE(left(), 2000);
      // A third of the lease later it is renewed.
      EXPECT_TRUE(testkit::eventually(within(2s), [&] { return left() < 1500; }));
      EXPECT_TRUE(testkit::eventually(within(2s), [&] { return left() > 1900; }));
    }
    EXPECT_EQ(ask_redis("EXISTS floor:many:5"), ":0\r\n");
  });
}

TEST_F(CompareWorker, TheFloorsHoldersOfFilesHaveAFileEach) {
  with_crowd(job("crowd", "floor", "local"), "holders", [] {
    const auto has = [](int number) {
      return std::filesystem::exists(servers_->folder /
                                     ("locks-floor/many-" + std::to_string(number)));
    };
    EXPECT_TRUE(has(0) && has(4));
    EXPECT_FALSE(has(5));
  });
}

TEST_F(CompareWorker, OneOfAQueueIsGranted) {
  auto one = job("queue", "dlock", "zookeeper");
  one["count"] = 3;
  Worker worker(one);
  worker.await("ready");
  EXPECT_EQ(worker.go().size(), 1U);
}

// -- The guard
// --------------------------------------------------------------------------------------

/// The resource that a guard writes to. Reads all the time: a guard blocks when its socket is full.
class Resource {
 public:
  Resource() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().c_str(), path().size());
    const timeval patience{.tv_sec = 0, .tv_usec = 20'000};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  }
  ~Resource() {
    reader_ = {};
    ::close(socket_);
  }
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  std::string path() const { return (folder_ / "resource").string(); }
  /// Waits for `count` writes of this text.
  bool receives(const std::string& text, std::ptrdiff_t count) {
    return testkit::eventually(within(10s), [&] {
      const std::scoped_lock guard(mutex_);
      return std::count(texts_.begin(), texts_.end(), text) >= count;
    });
  }

 private:
  void read(const std::stop_token& stop) {
    char text[100];
    while (!stop.stop_requested()) {
      const auto size = ::recv(socket_, text, sizeof text, 0);
      if (size < 0) continue;
      const std::scoped_lock guard(mutex_);
      texts_.emplace_back(text, static_cast<std::size_t>(size));
    }
  }

  testkit::TempDir folder_;
  int socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::mutex mutex_;
  std::vector<std::string> texts_;
  std::jthread reader_;
};

class CompareGuard : public CompareWorker {
 protected:
  object guard(const char* driver, std::string_view store, const object& more = {}) {
    auto one = job("guard", driver, store);
    one["resource"] = resource_.path();
    one["first_grant"] = 1000;
    one["lease_ms"] = 2000;
    for (const auto& field : more) one[field.key()] = field.value();
    return one;
  }

  Resource resource_;
};

TEST_F(CompareGuard, SaysEachStepOfItsHold) {
  Worker worker(guard("dlock", "redis"));
  worker.await("ready");
  for (int turn = 0; turn < 2; ++turn) {
    worker.command("acquire");
    const auto wanted = worker.await("wanted");
    EXPECT_EQ(number(wanted.at("grant")), 999 + turn);
    const auto granted = worker.await("granted");
    EXPECT_EQ(number(granted.at("grant")), 1000 + turn);
    EXPECT_GE(number(granted.at("at")), number(wanted.at("at")));
    const auto until = number(granted.at("until")) - number(granted.at("at"));
    EXPECT_GT(until, 1'000'000'000);
    EXPECT_LE(until, 2'000'000'000);
    const auto write =
        std::to_string(1000 + turn) + " " + std::to_string(number(granted.at("token")));
    EXPECT_TRUE(resource_.receives(write, 3)) << "it writes while it holds the lock";
    worker.command("release");
    EXPECT_EQ(number(worker.await("releasing").at("grant")), 1000 + turn);
    EXPECT_EQ(worker.await("released").at("error"), "");
  }
  worker.command("release");  // not held any more
  EXPECT_EQ(worker.await("late_release").at("error"), "");
  EXPECT_EQ(worker.end(), 0);
}

TEST_F(CompareGuard, SaysLaterDeadlines) {
  Worker worker(guard("dlock", "redis"));
  worker.await("ready");
  worker.command("acquire");
  worker.await("wanted");
  const auto granted = worker.await("granted");
  const auto extended = worker.next();
  ASSERT_EQ(extended.at("event"), "extended");
  EXPECT_GT(number(extended.at("until")), number(granted.at("until")));
  EXPECT_GE(number(extended.at("at")), number(granted.at("at")));
  EXPECT_EQ(number(extended.at("grant")), 1000);
}

TEST_F(CompareGuard, ReportsTheLossOfARemovedLockOnce) {
  Worker worker(guard("dlock", "redis"));
  worker.await("ready");
  worker.command("acquire");
  worker.await("wanted");
  worker.await("granted");
  ask_redis("FLUSHALL");
  EXPECT_EQ(worker.await("told_lost").at("reason"), "removed");
  worker.command("release");
  EXPECT_NE(worker.await("late_release").at("error"), "");
  EXPECT_EQ(worker.end(), 0);
}

TEST_F(CompareGuard, OnlyAMutexRefusesAReleaseByAnotherThread) {
  const auto refusal = [](const object& job) {
    Worker worker(job);
    worker.await("ready");
    worker.command("acquire");
    worker.await("wanted");
    worker.await("granted");
    worker.command("release_by_another_thread");
    const std::string said(worker.await("foreign_release").at("refused").as_string());
    worker.command("release");
    worker.await("releasing");
    worker.await("released");
    return said;
  };
  EXPECT_EQ(refusal(guard("dlock", "redis")), "");
  EXPECT_EQ(refusal(guard("naive", "redis", {{"naive", "set_px"}})), "");
  EXPECT_NE(refusal(guard("dlock", "redis", {{"hold_by", "mutex"}})), "");
}

TEST_F(CompareGuard, AMutexIsFreeAgainAfterItsRelease) {
  auto one = guard("dlock", "local", {{"hold_by", "mutex"}});
  Worker first(one), second(one);
  for (auto* worker : {&first, &second}) {
    worker->await("ready");
    worker->command("acquire");
    worker->await("wanted");
    worker->await("granted");
    worker->command("release");
    worker->await("releasing");
    EXPECT_EQ(worker->await("released").at("error"), "");
  }
}

TEST_F(CompareGuard, NaiveLocksExcludeWhileTheyAreHeld) {
  for (const auto& [store, naive] :
       {std::pair{"redis", "set_px"}, {"redis", "setnx_expire"}, {"memcached", "add"}}) {
    SCOPED_TRACE(std::string(store) + " " + naive);
    const auto one = guard("naive", store, {{"naive", naive}, {"lease_ms", 20'000}});
    Worker first(one), second(one);
    for (auto* worker : {&first, &second}) worker->await("ready");
    first.command("acquire");
    first.await("wanted");
    const auto granted = first.await("granted");
    EXPECT_FALSE(granted.contains("token"));
    EXPECT_FALSE(granted.contains("until"));
    second.command("acquire");
    second.await("wanted");
    EXPECT_TRUE(second.next(1s).empty());
    first.command("release");
    first.await("releasing");
    EXPECT_EQ(first.await("released").at("error"), "");
    second.await("granted");
  }
}

TEST_F(CompareGuard, NaiveLocksExpire) {
  for (const auto& [store, naive] :
       {std::pair{"redis", "set_px"}, {"redis", "setnx_expire"}, {"memcached", "add"}}) {
    SCOPED_TRACE(std::string(store) + " " + naive);
    const auto one = guard("naive", store, {{"naive", naive}, {"lease_ms", 1000}});
    Worker first(one), second(one);
    for (auto* worker : {&first, &second}) {
      worker->await("ready");
      worker->command("acquire");
      worker->await("wanted");
      worker->await("granted");
    }
  }
}

TEST_F(CompareGuard, ACrashBetweenTwoStepsLeavesAnEternalKey) {
  const auto one = guard("naive", "redis", {{"naive", "setnx_expire"}, {"pause_between", 1}});
  Worker worker(one);
  worker.await("ready");
  worker.command("acquire");
  worker.await("wanted");
  EXPECT_GT(number(worker.await("between").at("at")), 0);
  const auto key = "naive:" + std::string(one.at("lock").as_string());
  EXPECT_EQ(ask_redis("PTTL " + key), ":-1\r\n");
}

TEST_F(CompareGuard, TheNaiveTokenOfZooKeeperBeginsAgain) {
  Worker worker(guard("naive", "zookeeper", {{"naive", "sequence"}}));
  worker.await("ready");
  for (int turn = 0; turn < 2; ++turn) {
    worker.command("acquire");
    worker.await("wanted");
    EXPECT_EQ(number(worker.await("granted").at("token")), 1);
    worker.command("release");
    worker.await("releasing");
    worker.await("released");
  }
}

}  // namespace
}  // namespace dlock::compare

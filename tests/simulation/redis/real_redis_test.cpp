// SPDX-License-Identifier: Apache-2.0
//
// The simulated server against the real one: the same commands and the production scripts, one by
// one, and the same answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <charconv>
#include <chrono>
#include <cstdlib>

#include "backends/redis/scripts/scripts.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/simulation/redis/server.hpp"
#include "tests/simulation/redis/session.hpp"

namespace dlock::simulation::redis {
namespace {

/// A blocking connection to a real server.
class RealConnection {
 public:
  explicit RealConnection(std::uint16_t port) : context_(::redisConnect("127.0.0.1", port)) {}
  ~RealConnection() { ::redisFree(context_); }
  RealConnection(const RealConnection&) = delete;
  RealConnection& operator=(const RealConnection&) = delete;

  Reply ask(const Command& command) {
    std::vector<const char*> words;
    std::vector<std::size_t> sizes;
    for (const auto& word : command) {
      words.push_back(word.data());
      sizes.push_back(word.size());
    }
    auto* raw = static_cast<redisReply*>(
        ::redisCommandArgv(context_, static_cast<int>(words.size()), words.data(), sizes.data()));
    if (raw == nullptr) return error("the connection broke");
    auto reply = taken(*raw);
    ::freeReplyObject(raw);
    return reply;
  }

 private:
  static Reply taken(const redisReply& raw) {
    const auto size = static_cast<std::size_t>(raw.len);
    switch (raw.type) {
      case REDIS_REPLY_STATUS:
        return status(std::string(raw.str, size));
      case REDIS_REPLY_ERROR:
        return error(std::string(raw.str, size));
      case REDIS_REPLY_STRING:
        return bulk(std::string(raw.str, size));
      case REDIS_REPLY_INTEGER:
        return integer(raw.integer);
      case REDIS_REPLY_ARRAY: {
        Replies items;
        for (std::size_t i = 0; i < raw.elements; ++i) items.push_back(taken(*raw.element[i]));
        return array(std::move(items));
      }
      default:
        return nil();
    }
  }
  redisContext* context_;
};

std::optional<double> as_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return std::nullopt;
  return value;
}

/// Times left and times of day may differ by the time between the two answers.
bool alike(const Reply& a, const Reply& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Reply::Kind::integer && a.integer != b.integer) {
    return a.integer > 1000 && std::llabs(a.integer - b.integer) < 5000;
  }
  if (a.text != b.text) {
    // The token of a lock's value is a time of day.
    const auto end = std::min(a.text.find(':'), a.text.size());
    const bool same_end = b.text.size() >= end && a.text.substr(end) == b.text.substr(end);
    const auto x = as_number(a.text.substr(0, end));
    const auto y = as_number(b.text.substr(0, end));
    if (!same_end) return false;
    const bool time_of_day = x && y && *x > 1e9;
    if (!time_of_day || std::abs(*x - *y) > 20e6) return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!alike(a.items[i], b.items[i])) return false;
  }
  return true;
}

/// A real server and a simulated one, asked the same.
class Both {
 public:
  Both() {
    real_server_.start();
    real_ = std::make_unique<RealConnection>(real_server_.port());
    listener_ = std::make_unique<RealConnection>(real_server_.port());
    const auto now = std::chrono::duration_cast<milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    simulated_->set_clock_offset(now - milliseconds(simulated_->now_ms()));
    session_->set_id(simulated_->admit(session_));
    hearing_->set_id(simulated_->admit(hearing_));
  }

  void listen(const std::string& channel) {
    listener_->ask({"SUBSCRIBE", channel});
    simulated_->serve(*hearing_, {"SUBSCRIBE", channel});
  }
  /// Both answer alike. The simulated answer.
  Reply ask(const Command& command) {
    world.run_until(started_ + (std::chrono::steady_clock::now() - really_started_));
    const auto real = real_->ask(command);
    auto simulated = simulated_->serve(*session_, command);
    EXPECT_TRUE(alike(real, simulated))
        << to_text(array({bulk(command[0]), bulk(command.size() > 1 ? command[1] : "")}))
        << "\nreal:      " << to_text(real) << "\nsimulated: " << to_text(simulated);
    return simulated;
  }

  World world{1};

 private:
  std::shared_ptr<Session> make_session() {
    return std::make_shared<Session>(world, simulated_, client_, std::weak_ptr<SimStream>());
  }

  const TimePoint started_ = world.now();
  const std::chrono::steady_clock::time_point really_started_ = std::chrono::steady_clock::now();
  testkit::RedisServer real_server_;
  std::unique_ptr<RealConnection> real_;
  std::unique_ptr<RealConnection> listener_;
  Network network_{world};
  Process process_{world, "test", {}};
  std::shared_ptr<Client> client_ = std::make_shared<Client>(Client{process_, network_});
  std::shared_ptr<Server> simulated_ =
      std::make_shared<Server>(world, ServerSettings{}, Lineage{make_run_id(world)});
  std::shared_ptr<Session> session_ = make_session();
  std::shared_ptr<Session> hearing_ = make_session();
};

TEST(SimulatedRedisAnswers, ResultsOfScriptsAreConvertedAsByRedis) {
  Both both;
  for (const char* script : {
           "return nil",
           "return true",
           "return false",
           "return 3.99",
           "return -3.99",
           "return 'text'",
           "return ''",
           "return {}",
           "return {1, 'a', 2.5, {3, {}}, false, true}",
           "return {1, 2, nil, 4}",
           "return {ok = 'FINE'}",
           "return {err = 'ERR of our own'}",
           "return redis.status_reply('YES')",
           "return redis.call('GET', 'none') == false",
           "return redis.call('SET', 'a', 'b')",
           "return redis.call('SET', 'a', 'b').ok",
           "return redis.call('SET', 'a', 12345678901234567)",
           "return redis.call('GET', 'a')",
           "return redis.call('SET', 'a', 0.1)",
           "return redis.call('GET', 'a')",
           "return redis.call('MGET', 'a', 'none', 'b')",
           "return type(redis.pcall('ZCARD', 'a'))",
           "return redis.pcall('ZCARD', 'a').err",
           "return redis.pcall('ZCARD', 'a')",
           "redis.call('ZCARD', 'a')",
           "local a = 1\nreturn redis.call('ZADD', 'a', 1, 'x')",
           "return redis.call('ZADD', 'set', 1.5, 'x')",
           "return redis.call('ZADD', 'set', 1.5, 'x')",
           "return redis.call('ZADD', 'set', '1700000000000000', 'y')",
           "return redis.call('ZSCORE', 'set', 'x')",
           "return redis.call('ZSCORE', 'set', 'y')",
           "return redis.call('ZRANGE', 'set', 0, -1)",
           "return redis.call('ZRANK', 'set', 'none')",
           "return redis.call('HSET', 'hash', 'field', 'v=1 until=1 kind=reads')",
           "return redis.call('HGET', 'hash', 'field')",
           "return redis.call('HGET', 'hash', 'none') == false",
           "return redis.pcall('HGET', 'set', 'x').err",
           "return redis.call('HDEL', 'none', '')",
           "return redis.call('TYPE', 'set')",
           "return redis.call('TYPE', 'set').ok",
           "return redis.call('TYPE', 'none')",
           "return redis.call('PTTL', 'set')",
           "return redis.call('PTTL', 'none')",
           "return redis.call('PEXPIRE', 'set', 0)",
           "return redis.call('PEXPIRE', 'set', 100)",
           "return redis.call('GET', {})",
           "return #ARGV",
           "return string.format('%.0f', redis.call('TIME')[1] / 60)",
           "return tonumber(nil or '7')",
       }) {
    both.ask({"EVAL", script, "0"});
  }
}

TEST(SimulatedRedisAnswers, PlainCommandsAnswerAsRedisDoes) {
  Both both;
  for (const Command& command : std::vector<Command>{
           {"PING"},
           {"GET", "a"},
           {"SET", "a", "1", "PX", "100000"},
           {"SET", "a", "2", "NX"},
           {"SET", "a", "1", "XX", "PX", "100000"},
           {"SET", "c", "1", "XX"},
           {"SET", "a", "2", "XX", "NX"},
           {"SET", "a", "2", "PX", "0"},
           {"SET", "a", "2", "BAD"},
           {"INCR", "a"},
           {"PTTL", "a"},
           {"SET", "b", "text"},
           {"INCR", "b"},
           {"PTTL", "b"},
           {"EXISTS", "a", "none", "b", "a"},
           {"PEXPIRE", "b", "60000"},
           {"PEXPIRE", "c", "60000"},
           {"PEXPIRE", "b", "x"},
           {"DEL", "a", "b", "c"},
           {"ZADD", "z", "3", "c"},
           {"ZADD", "z", "1", "b"},
           {"ZADD", "z", "1", "a"},
           {"ZADD", "z", "x", "a"},
           {"ZRANGE", "z", "0", "-1"},
           {"ZRANGE", "z", "-2", "-1"},
           {"ZRANGE", "z", "0", "0"},
           {"ZRANK", "z", "c"},
           {"ZSCORE", "z", "c"},
           {"ZSCORE", "z", "none"},
           {"ZCARD", "z"},
           {"GET", "z"},
           {"SET", "z2", "x"},
           {"ZREM", "z2", "x"},
           {"ZREM", "z", "a", "b", "none"},
           {"ZREM", "z", "c"},
           {"TYPE", "z"},
           {"HSET", "h", "a", "1"},
           {"HSET", "h", "a", "2"},
           {"HSET", "h", "b", "3"},
           {"HGET", "h", "a"},
           {"HGET", "h", "none"},
           {"HGET", "none", "a"},
           {"HLEN", "h"},
           {"HLEN", "none"},
           {"TYPE", "h"},
           {"GET", "h"},
           {"ZADD", "h", "1", "a"},
           {"ZREM", "h", "a"},
           {"HSET", "z2", "a", "1"},
           {"HDEL", "z2", "a"},
           {"HDEL", "h", "", "none"},
           {"HDEL", "h", "a", "b"},
           {"HDEL", "h", "a"},
           {"TYPE", "h"},
           {"PUBLISH", "nobody", "text"},
           {"CLIENT", "KILL", "ID", "4711"},
           {"CONFIG", "GET", "no-appendfsync-on-rewrite"},
           {"EVALSHA", std::string(40, '0'), "0"},
           {"SCRIPT", "LOAD", "return 1"},
       }) {
    both.ask(command);
  }
}

/// The argument of scripts that notify a waiter: channels, reservation, its memory.
constexpr const char* kWaking = "dlock:wake: 60000 60000";

/// The argument of acquire that says how a claim waits. `at_grant`: `queued`, `range` or nothing.
constexpr const char* kNoLimit = "9223372036854775807";

std::string how(std::string_view at_grant, std::string_view kind, std::string_view arrival = "") {
  return fmt::format("queued={} range={} kind={} patience=60000 arrival={}",
                     at_grant == "queued" ? "yes" : "no", at_grant == "range" ? "yes" : "no", kind,
                     arrival);
}

/// Calls of the production scripts, by chance.
class Calls {
 public:
  explicit Calls(World& world) : world_(world) {}

  Command next() {
    const auto& all = production::scripts();
    switch (world_.below(9)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return acquire(all.acquire);
      case 4:
        return call(all.renew, {key(""), key("%alive"), key("%broken")}, {owner(), "30000"});
      case 5:
      case 6:
        return call(world_.chance(0.5) ? all.release : all.release_unwanted,
                    {key(""), key("%queue"), key("%alive"), key("%next")},
                    {owner(), world_.chance(0.5) ? waiter() : "", kWaking});
      case 7:
        return call(all.evict,
                    {key(""), key("%queue"), key("%alive"), key("%next"), key("%broken")},
                    {std::to_string(last_token_), kWaking, "v=1,host,1,app,0,",
                     world_.chance(0.5) ? "1" : "0"});
      default:
        return call(all.inspect, {key(""), key("%queue"), key("%alive")}, {"10"});
    }
  }
  void note(const Reply& reply) {
    if (reply.items.size() == 3 && !reply.items[1].text.empty())
      last_token_ = static_cast<std::uint64_t>(as_number(reply.items[1].text).value_or(0));
  }
  std::string waiter() { return instance(world_.below(2)) + " " + owner(); }
  static std::string instance(std::uint64_t n) {
    return fmt::format("00000000-0000-4000-8000-00000000000{}", n);
  }

 private:
  static std::string key(std::string_view suffix) { return fmt::format("dlock:{{x}}{}", suffix); }
  std::string owner() { return fmt::format("{},host,1,app", instance(world_.below(3) + 4)); }

  Command acquire(const production::Script& script) {
    // Above the clock, so that both grant the same tokens.
    const auto least = std::to_string(5'000'000'000'000'000 + world_.below(1000));
    const auto arrival = world_.chance(0.7) ? std::to_string(1000 + world_.below(1000)) : "";
    const std::string kind = world_.chance(0.7) ? "notified" : "none";
    return call(
        script, {key(""), key("%fence"), key("%queue"), key("%alive"), key("%next")},
        {waiter(), "30000", least, "600000", how(world_.chance(0.5) ? "queued" : "", kind, arrival),
         world_.chance(0.9) ? kNoLimit : "1"});
  }
  Command call(const production::Script& script, std::vector<std::string> keys,
               const std::vector<std::string>& arguments) {
    Command command{"EVAL", script.text, std::to_string(keys.size())};
    command.insert(command.end(), keys.begin(), keys.end());
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back(std::to_string(++tag_));
    return command;
  }

  World& world_;
  std::uint64_t last_token_ = 0;
  std::uint64_t tag_ = 0;
};

TEST(SimulatedRedisAnswers, ProductionScriptsDoAsOnRedis) {
  Both both;
  both.listen("dlock:wake:" + Calls::instance(0));
  for (int round = 0; round < 60 && !::testing::Test::HasFailure(); ++round) {
    Calls calls(both.world);
    for (int i = 0; i < 40; ++i) {
      // Now and then an operator's hand, a waiter that is dead, or another program's data.
      if (both.world.chance(0.03)) both.ask({"DEL", "dlock:{x}"});
      if (both.world.chance(0.1)) {
        both.ask({"HSET", "dlock:{x}%alive", calls.waiter(), "v=1 until=1 kind=notified"});
      }
      if (both.world.chance(0.01)) both.ask({"ZADD", "dlock:{x}", "1", "foreign"});
      calls.note(both.ask(calls.next()));
    }
    for (const char* suffix : {"", "%fence", "%queue", "%alive", "%next", "%broken"}) {
      const auto key = std::string("dlock:{x}") + suffix;
      // Until when a first try is reserved is the clock's doing.
      if (!key.ends_with("%next")) both.ask({"GET", key});
      // The values depend on the clock.
      if (key.ends_with("%alive")) {
        both.ask({"HLEN", key});
      } else {
        both.ask({"ZRANGE", key, "0", "-1"});
      }
      both.ask({"PTTL", key});
      both.ask({"DEL", key});
    }
  }
}

/// Two free locks: `x` for the script with the fast path, `y` for one without.
class AtOnce {
 public:
  static constexpr const char* kWaiter =
      "00000000-0000-4000-8000-000000000000 00000000-0000-4000-8000-000000000004,host,1,app";

  Reply acquire(const std::string& least, const std::string& place,
                const std::string& until = kNoLimit) {
    return same({"30000", least, "600000", place, until});
  }
  Reply acquire_at_once(const std::string& place = how("", "notified")) {
    return both_.ask(call(production::scripts().acquire, "x",
                          {"", "%fence", "%queue", "%alive", "%next"},
                          {kWaiter, "30000", "0", "600000", place, kNoLimit}));
  }
  /// A process says that it lives, and may listen.
  void speak(const std::string& process, bool listens = true) {
    if (listens) both_.listen("dlock:wake:" + process);
    both_.ask({"EVAL", production::scripts().presence.text, "1", "dlock:here%" + process, "7",
               "900", "60000", "tag"});
  }
  void line_up(const std::string& waiter, const std::string& alive) {
    put({"ZADD", "1", waiter}, "%queue");
    put({"HSET", waiter, alive}, "%alive");
  }
  /// With `fair`.
  Reply acquire_in_order(const std::string& place) {
    return both_.ask(call(production::scripts().acquire_in_order, "y",
                          {"", "%fence", "%queue", "%alive", "%next"},
                          {kWaiter, "30000", "0", "600000", place, kNoLimit, "", kWaking}));
  }
  std::int64_t left_in_order() { return both_.ask({"PTTL", key("y", "")}).integer; }
  std::string kind_in_order(std::string_view suffix) {
    return both_.ask({"TYPE", key("y", suffix)}).text;
  }
  std::string value(std::string_view suffix) { return both_.ask({"GET", key("x", suffix)}).text; }
  Reply release() {
    const auto& release = production::scripts().release;
    const std::string owner = std::string(kWaiter).substr(37);
    both_.ask(
        call(release, "y", {"", "%queue", "%alive", "%next", "%fence"}, {owner, "", kWaking}));
    return both_.ask(
        call(release, "x", {"", "%queue", "%alive", "%next", "%fence"}, {owner, "", kWaking}));
  }
  /// Sends the command for the keys of both locks.
  Reply put(const Command& command, std::string_view suffix) {
    auto with = command;
    with.insert(with.begin() + 1, key("y", suffix));
    both_.ask(with);
    with.at(1) = key("x", suffix);
    return both_.ask(with);
  }
  /// Both expire, in `most` milliseconds at the latest.
  bool expires(std::string_view suffix, int most) {
    const auto* const script =
        "local left = redis.call('PTTL', KEYS[1]) "
        "return left > 0 and left <= tonumber(ARGV[1]) and 1 or 0";
    bool all = true;
    for (const char* name : {"x", "y"}) {
      const auto reply = both_.ask({"EVAL", script, "1", key(name, suffix), std::to_string(most)});
      all = all && reply.integer == 1;
    }
    return all;
  }
  /// Expects that both locks have the same there.
  Reply see(const char* command, std::string_view suffix) {
    auto short_way = both_.ask({command, key("x", suffix)});
    const auto long_way = both_.ask({command, key("y", suffix)});
    EXPECT_TRUE(alike(short_way, long_way))
        << command << " " << suffix << ": " << to_text(short_way) << " " << to_text(long_way);
    return short_way;
  }

 private:
  static std::string key(std::string_view name, std::string_view suffix) {
    return fmt::format("dlock:{{{}}}{}", name, suffix);
  }
  static Command call(const production::Script& script, std::string_view name,
                      const std::vector<std::string>& suffixes, Command arguments) {
    Command command{"EVAL", script.text, std::to_string(suffixes.size())};
    for (const auto& suffix : suffixes) command.push_back(key(name, suffix));
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.emplace_back("tag");
    return command;
  }
  Reply same(Command arguments) {
    const std::vector<std::string> suffixes{"", "%fence", "%queue", "%alive", "%next"};
    arguments.insert(arguments.begin(), kWaiter);
    auto short_way = both_.ask(call(production::scripts().acquire, "x", suffixes, arguments));
    arguments.emplace_back("");
    arguments.emplace_back(kWaking);
    const auto long_way =
        both_.ask(call(production::scripts().acquire_in_order, "y", suffixes, arguments));
    EXPECT_TRUE(alike(short_way, long_way)) << to_text(short_way) << " " << to_text(long_way);
    return short_way;
  }

  Both both_;
};

std::uint64_t token_of(const Reply& reply) {
  EXPECT_EQ(reply.items.size(), 3U) << to_text(reply);
  return reply.items.size() == 3 ? std::stoull(reply.items[1].text) : 0;
}

TEST(SimulatedRedisAnswers, AFreeLockIsTakenAndGivenBackAsByTheWholeScripts) {
  AtOnce locks;
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    const auto token = token_of(locks.acquire("0", how("", "notified")));
    EXPECT_GT(token, last);
    last = token;
    for (const char* suffix : {"", "%fence"}) {
      EXPECT_THAT(locks.see("GET", suffix).text, testing::StartsWith(std::to_string(token)));
      EXPECT_GT(locks.see("PTTL", suffix).integer, 0);
    }
    EXPECT_EQ(locks.see("TYPE", "%queue").text, "none") << "it has not waited";
    EXPECT_EQ(locks.release().items.at(0).integer, 2) << "and nobody wants it";
    EXPECT_EQ(locks.see("TYPE", "").text, "none");
  }
}

TEST(SimulatedRedisAnswers, TheShortWayIsNotTakenWhereThereIsMoreToDo) {
  AtOnce locks;
  // A token that is ahead of the clock, by the caller's word and by the fence's.
  EXPECT_EQ(token_of(locks.acquire("5000000000000000", how("", "notified"))),
            5'000'000'000'000'001U);
  EXPECT_GT(locks.see("PTTL", "%fence").integer, 86'400'000) << "remembered for so long, too";
  locks.release();
  // No range fits between such a token and the clock.
  EXPECT_EQ(token_of(locks.acquire("0", how("range", "notified"))), 5'000'000'000'000'002U);
  EXPECT_GT(locks.see("PTTL", "%fence").integer, 86'400'000);
  locks.release();
  locks.put({"DEL"}, "%fence");
  // A waiter that is granted the lock leaves the queue.
  locks.put({"ZADD", "1", AtOnce::kWaiter}, "%queue");
  token_of(locks.acquire("0", how("queued", "notified", "1000")));
  EXPECT_EQ(locks.see("TYPE", "%queue").text, "none");
  // A release notifies or drops the waiters of the queue, and then ends.
  locks.put({"ZADD", "1", "00000000-0000-4000-8000-000000000001 dead"}, "%queue");
  EXPECT_EQ(locks.release().items.at(0).integer, 1);
  EXPECT_EQ(locks.see("TYPE", "%queue").text, "none");
  // A first try that was given to another.
  locks.put({"SET", "99999999999999 x"}, "%next");
  locks.put({"SET", "1 00000000-0000-4000-8000-000000000001 late"}, "%next");
  token_of(locks.acquire("0", how("", "notified")));
  EXPECT_EQ(locks.see("TYPE", "%next").text, "none") << "it has let it pass";
  locks.release();
  // Another program's data.
  locks.put({"ZADD", "1", "foreign"}, "");
  EXPECT_EQ(locks.acquire_at_once().kind, Reply::Kind::error);
}

TEST(SimulatedRedisAnswers, AReleasePutsTheNextInLineInTheHoldersPlace) {
  AtOnce locks;
  const std::string process = "00000000-0000-4000-8000-000000000001";
  const std::string owner = "00000000-0000-4000-8000-000000000005,host,2,app";
  locks.speak(process);
  const auto token = token_of(locks.acquire("5000000000000000", how("", "notified")));
  locks.line_up(process + " " + owner, "v=1 until=9000000000000 kind=handed");
  EXPECT_EQ(locks.release().items.at(0).integer, 1);
  EXPECT_EQ(locks.see("GET", "").text, std::to_string(token + 1) + ":" + owner);
  EXPECT_TRUE(locks.expires("", 1000)) << "after the probation";
  EXPECT_EQ(locks.see("GET", "%fence").text, std::to_string(token + 1));
  for (const char* suffix : {"%queue", "%alive", "%next"}) {
    EXPECT_EQ(locks.see("TYPE", suffix).text, "none") << suffix;
  }
}

TEST(SimulatedRedisAnswers, AReleaseNotifiesOrDropsAWaiterThatIsNotReady) {
  AtOnce locks;
  const std::string listens = "00000000-0000-4000-8000-000000000001";
  const std::string deaf = "00000000-0000-4000-8000-000000000002";
  const std::string silent = "00000000-0000-4000-8000-000000000003";
  const std::string owner = " 00000000-0000-4000-8000-000000000005,host,2,app";
  locks.speak(listens);
  locks.speak(deaf, false);
  const struct {
    std::string process;
    std::string alive;
    bool is_woken;
  } rows[] = {{listens, "v=1 until=9000000000000 kind=notified", true},
              {listens, "v=1 until=9000000000000 kind=present", true},
              {listens, "v=1 until=9000000000000 kind=reads", true},
              {listens, "v=1 until=1 kind=handed", false},
              {listens, "9000000000000", false},
              {deaf, "v=1 until=9000000000000 kind=handed", false},
              {silent, "v=1 until=9000000000000 kind=handed", false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.process + " " + row.alive);
    token_of(locks.acquire("0", how("", "notified")));
    locks.line_up(row.process + owner, row.alive);
    EXPECT_EQ(locks.release().items.at(0).integer, 1);
    for (const char* suffix : {"", "%queue", "%alive"}) {
      EXPECT_EQ(locks.see("TYPE", suffix).text, "none") << suffix;
    }
    EXPECT_EQ(locks.see("TYPE", "%next").text, row.is_woken ? "string" : "none");
    locks.put({"DEL"}, "%next");
  }
}

TEST(SimulatedRedisAnswers, TheNextWaiterIsGrantedTheLockAtOnceAndLeavesTheQueue) {
  AtOnce locks;
  const std::string me = AtOnce::kWaiter;
  const std::string deaf = "00000000-0000-4000-8000-000000000003 before";
  locks.speak(me.substr(0, 36));
  locks.line_up(deaf, "v=1 until=9000000000000 kind=notified");
  locks.put({"ZADD", "2", me}, "%queue");
  locks.put({"HSET", me, "v=1 until=9000000000000 kind=handed"}, "%alive");
  const auto granted = locks.acquire_in_order(how("queued", "handed", "2"));
  EXPECT_EQ(granted.items.at(0).integer, 2) << to_text(granted);
  token_of(granted);
  EXPECT_GT(locks.left_in_order(), 2000) << "for its lease, not for a probation";
  for (const char* suffix : {"%queue", "%alive", "%next"}) {
    EXPECT_EQ(locks.kind_in_order(suffix), "none") << suffix;
  }
}

TEST(SimulatedRedisAnswers, AGrantBringsARangeOfTokensIfItIsAskedFor) {
  AtOnce locks;
  locks.put({"SET", "1000"}, "%fence");
  const auto granted = locks.acquire_at_once(how("range", "notified"));
  ASSERT_EQ(granted.items.size(), 4U) << to_text(granted);
  EXPECT_EQ(granted.items[0].integer, 8);
  EXPECT_EQ(granted.items[1].text, "1001");
  EXPECT_EQ(locks.value("%fence"), granted.items[2].text);
  EXPECT_GT(std::stoull(granted.items[2].text), 1'000'000U) << "the clock";
  EXPECT_THAT(locks.value(""), testing::StartsWith("1001:"));
  locks.release();
  // Not where the last token is not known: others may have had higher ones.
  locks.put({"DEL"}, "%fence");
  EXPECT_EQ(locks.acquire_at_once(how("range", "notified")).items.at(0).integer, 1);
  locks.release();
  locks.put({"SET", "x"}, "%fence");
  EXPECT_EQ(locks.acquire_at_once(how("range", "notified")).items.at(0).integer, 1);
}

}  // namespace
}  // namespace dlock::simulation::redis

// SPDX-License-Identifier: Apache-2.0
//
// Getting in: TLS, passwords, rights, sockets; and what the store promises as it is configured.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <map>

#include "testkit/temp_dir.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

constexpr const char* kFast = "?connect_timeout=3s";
/// connect_timeout, and two seconds for a busy machine.
constexpr auto kConnectBound = 5s;

/// What connecting says; empty if it succeeds.
std::string connect_error(const std::string& url, error_code* ec = nullptr) {
  const auto start = Clock::now();
  try {
    auto locks = open_redis(url);
    locks.connect();
    locks.lock("x")->acquire().release();
    return {};
  } catch (const LockError& error) {
    EXPECT_LT(Clock::now() - start, kConnectBound) << error.what();
    if (ec != nullptr) *ec = error.code();
    return error.what();
  }
}

class RedisTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    certificates_ = new Certificates;
    certificates_->make_authority("other");
    certificates_->make("old", true);
    certificates_->make("client");
  }
  static void TearDownTestSuite() { delete std::exchange(certificates_, nullptr); }

  static std::string file(const std::string& name) { return certificates_->file(name); }

  struct TlsServer : RedisTlsServer {
    explicit TlsServer(const std::string& certificate, const std::string& clients = "no")
        : RedisTlsServer(*certificates_, certificate, clients) {}
    std::string url(const std::string& rest) const { return RedisTlsServer::url(kFast + rest); }
  };

  static Certificates* certificates_;
};
Certificates* RedisTls::certificates_ = nullptr;

TEST_F(RedisTls, TheRightAuthorityAndNothingElse) {
  TlsServer server("server");
  EXPECT_EQ(connect_error(server.url("&tls_ca=" + file("ca.crt"))), "");
  EXPECT_EQ(connect_error(server.url("&tls_ca=" + file("ca.crt") + "&tls_server_name=locks.test")),
            "");
  EXPECT_EQ(connect_error(server.url("&tls_verify=false")), "");
  EXPECT_THAT(connect_error(server.url("&tls_ca=" + file("other.crt"))),
              HasSubstr("certificate is refused"));
  EXPECT_THAT(connect_error(server.url("")), HasSubstr("certificate is refused"));
  EXPECT_THAT(
      connect_error(server.url("&tls_ca=" + file("ca.crt") + "&tls_server_name=other.test")),
      HasSubstr("tls_server_name"));
  EXPECT_THAT(connect_error(server.url("&tls_ca=/nowhere.pem")), HasSubstr("/nowhere.pem"));
  EXPECT_THAT(connect_error(server.url("&tls_ca=/")), HasSubstr("Is a directory"));
}

TEST_F(RedisTls, AnExpiredCertificate) {
  TlsServer server("old");
  EXPECT_THAT(connect_error(server.url("&tls_ca=" + file("ca.crt"))), HasSubstr("expired"));
}

TEST_F(RedisTls, ACertificateOfOurOwn) {
  TlsServer server("server", "yes");
  const auto ca = "&tls_ca=" + file("ca.crt");
  EXPECT_EQ(connect_error(server.url(ca + "&tls_cert=" + file("client.crt") +
                                     "&tls_key=" + file("client.key"))),
            "");
  EXPECT_THAT(connect_error(server.url(ca)), AnyOf(HasSubstr("certificate"), HasSubstr("closed")));
}

TEST_F(RedisTls, ALockSurvivesAFileThatIsWrongForAWhile) {
  struct Row {
    const char* option;
    const char* good;
    const char* wrong;
  };
  for (const auto& row :
       {Row{"tls_ca", "ca.crt", "other.crt"}, Row{"tls_cert", "client.crt", "other.crt"},
        Row{"tls_key", "client.key", "other.key"}}) {
    SCOPED_TRACE(row.option);
    TlsServer server("server", "yes");
    const TempDir folder("dlock-redis-tls");
    const auto changed = folder / "changed";
    const auto replace = [&](const char* by) {
      std::filesystem::copy_file(file(by), folder / "next");
      std::filesystem::rename(folder / "next", changed);
    };
    replace(row.good);
    std::string url = "?";
    for (const auto& [option, path] :
         std::map<std::string, std::string>{{"tls_ca", file("ca.crt")},
                                            {"tls_cert", file("client.crt")},
                                            {"tls_key", file("client.key")}}) {
      url += option + "=" + (option == row.option ? changed.string() : path) + "&";
    }
    url.pop_back();
    auto warnings = std::make_shared<WarningLog>();
    auto locks = open_redis(server.RedisTlsServer::url(url), warnings);
    auto held = locks.lock("x")->acquire();
    StateLog log(held);
    replace(row.wrong);
    RedisClient(server.server.port()).ask({"CLIENT", "KILL", "TYPE", "normal"});
    ASSERT_TRUE(log.wait_for(HandleState::suspect));
    auto waiting = acquire_later(locks.lock("y"));
    ASSERT_TRUE(eventually(patience(), [&] { return warnings->has("certificate"); }));
    replace(row.good);
    EXPECT_TRUE(log.wait_for(HandleState::held));
    EXPECT_EQ(waiting.get().state(), HandleState::held);
    EXPECT_FALSE(held.release());
  }
}

TEST_F(RedisTls, PlainTextToATlsPortAndTheOtherWayRound) {
  TlsServer server("server");
  const auto tls_port = std::to_string(server.port.number());
  EXPECT_THAT(connect_error("redis://127.0.0.1:" + tls_port + kFast), HasSubstr("rediss://"));
  EXPECT_THAT(connect_error("rediss://127.0.0.1:" + std::to_string(server.server.port()) + kFast),
              HasSubstr("TLS"));
}

/// Descriptors that a program started by us would inherit, standard input, output and error aside.
std::size_t inheritable() {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    const int flags = ::fcntl(fd, F_GETFD);
    if (fd > 2 && flags >= 0 && (flags & FD_CLOEXEC) == 0) ++found;
  }
  return found;
}

TEST_F(RedisTls, P07_NoDescriptorIsForChildren) {
  const auto before = inheritable();
  TempDir folder("dlock-redis-unix");
  const auto path = (folder / "r.sock").string();
  RedisServer plain({"--unixsocket", path});
  plain.start();
  TlsServer server("server");
  for (const auto& url :
       {server.url("&tls_ca=" + file("ca.crt")), "redis+unix://" + path, redis_url(plain.port())}) {
    auto locks = open_redis(url);
    auto held = locks.lock("x")->acquire();
    EXPECT_FALSE(locks.lock("x")->try_acquire({.wait = 50ms}));
    EXPECT_EQ(inheritable(), before) << url;
  }
}

class RedisAccess : public RedisTest {
 protected:
  std::string url(const std::string& user, const std::string& rest = {}) {
    return "redis://" + user + "127.0.0.1:" + std::to_string(server_.port()) + kFast + rest;
  }
  void user(const std::string& rules) {
    RedisClient admin(server_.port());
    redis::Command command{"ACL", "SETUSER", "app", "reset", "on", ">secret"};
    std::string word;
    for (const char c : rules + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        command.push_back(std::exchange(word, {}));
      }
    }
    const auto reply = admin.ask(command);
    ASSERT_EQ(reply.text, "OK");
  }
};

TEST_F(RedisAccess, Passwords) {
  user("+@all ~* &*");
  EXPECT_EQ(connect_error(url("app:secret@")), "");
  error_code ec;
  EXPECT_THAT(connect_error(url("app:wrong@"), &ec), HasSubstr("WRONGPASS"));
  EXPECT_EQ(ec, errc::access_denied);
  EXPECT_THAT(connect_error(url(":secret@")), HasSubstr("without any password"));
  RedisClient(server_.port()).ask({"CONFIG", "SET", "requirepass", "pw"});
  EXPECT_EQ(connect_error(url(":pw@")), "");
  EXPECT_THAT(connect_error(url("")), HasSubstr("NOAUTH"));
  EXPECT_THAT(connect_error(url(":wrong@")), HasSubstr("WRONGPASS"));
}

/// A password that changes on the server and in its file, one after the other.
class RedisPasswordFile : public RedisAccess {
 protected:
  void SetUp() override {
    RedisAccess::SetUp();
    user("+@all ~* &*");
    write_file(secret_, "secret\n");
    locks_ = open("20s");
  }
  LockManager open(const std::string& lease) {
    return open_redis(redis_url(server_.port(), "&lease=" + lease + "&auth.username=app" +
                                                    "&auth.password_file=" + secret_.string()),
                      warnings_);
  }
  void change_on_server() { client().ask({"ACL", "SETUSER", "app", "resetpass", ">new"}); }
  void change_file() {
    write_file(folder_ / "next", "new\n");
    std::filesystem::rename(folder_ / "next", secret_);
  }
  void break_links() { client().ask({"CLIENT", "KILL", "USER", "app"}); }
  bool server_refuses() {
    return eventually(patience(), [&] { return warnings_->has("WRONGPASS"); });
  }

  const TempDir folder_{"dlock-password"};
  const std::filesystem::path secret_ = folder_ / "password";
  const std::shared_ptr<WarningLog> warnings_ = std::make_shared<WarningLog>();
  std::optional<LockManager> locks_;
};

TEST_F(RedisPasswordFile, ANewPasswordIsReadBeforeTheNextLogin) {
  auto held = locks_->lock("x")->acquire();
  StateLog log(held);
  change_file();
  change_on_server();
  break_links();
  EXPECT_TRUE(log.wait_for(HandleState::held));
  EXPECT_FALSE(warnings_->has("WRONGPASS")) << warnings_->all();
  EXPECT_FALSE(held.release());
}

TEST_F(RedisPasswordFile, AServerThatChangedFirstIsAskedAgain) {
  auto held = locks_->lock("x")->acquire();
  StateLog log(held);
  change_on_server();
  break_links();
  ASSERT_TRUE(server_refuses());
  EXPECT_TRUE(warnings_->has(secret_.string())) << warnings_->all();
  auto waiting = acquire_later(locks_->lock("y"));
  change_file();
  EXPECT_TRUE(log.wait_for(HandleState::held));
  EXPECT_EQ(waiting.get().state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_F(RedisPasswordFile, TheReasonOfALossIsTheRefusal) {
  auto locks = open("2s");
  auto held = locks.lock("x")->acquire();
  StateLog log(held);
  change_on_server();
  break_links();
  ASSERT_TRUE(log.wait_for(HandleState::lost));
  EXPECT_EQ(held.loss_reason(), LossReason::access_denied);
}

TEST_F(RedisPasswordFile, AFileThatCannotBeReadLeavesThePasswordAsItWas) {
  auto held = locks_->lock("x")->acquire();
  StateLog log(held);
  std::filesystem::remove(secret_);
  break_links();
  EXPECT_TRUE(log.wait_for(HandleState::held));
  EXPECT_FALSE(held.release());
}

/// As README.md gives them.
std::string documented_rights() {
  const std::string manual = read_file(DLOCK_REDIS_MANUAL);
  const std::string mark = "ACL SETUSER app on >password ";
  const auto start = manual.find(mark);
  const auto end = manual.find("```", start);
  EXPECT_NE(end, std::string::npos);
  auto rights = manual.substr(start + mark.size(), end - start - mark.size());
  std::replace(rights.begin(), rights.end(), '\n', ' ');
  return rights;
}

TEST_F(RedisAccess, TheDocumentedRightsAreEnough) {
  user(documented_rights());
  auto warnings = std::make_shared<WarningLog>();
  {
    auto strict = open_redis(url("app:secret@"), warnings);
    strict.connect();
    const auto promised = strict.inspect().front().capabilities.value();
    ASSERT_EQ(promised.shortfalls.size(), 1U);
    EXPECT_THAT(promised.shortfalls.front().reason, HasSubstr("appendonly is no"))
        << "the settings are seen";
  }
  auto locks = open_redis(url("app:secret@", "&poll=30s"));
  auto lock = locks.lock("x");
  auto held = lock->acquire();
  auto waiting = std::async(std::launch::async, [&] { return lock->acquire({.wait = 20s}); });
  ASSERT_TRUE(eventually(patience(), [&] { return locks.status("x").waiting.size() == 1; }));
  EXPECT_EQ(locks.list().size(), 1U);
  held.release();
  auto next = waiting.get();
  locks.evict("x", *next.token(), {.at_once = true});
  EXPECT_EQ(locks.inspect().front().capabilities->wake_up, WakeUp::push);
  // An old connection can be killed.
  RedisClient(server_.port()).ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(locks.lock("y")->acquire({.wait = 20s}));
}

TEST_F(RedisAccess, AListNamesTheKeyThatItMayNotRead) {
  auto owner = open_redis(server_.url());
  auto seen = owner.lock("seen/x")->acquire({.wait = 20s});
  auto hidden = owner.lock("hidden")->acquire({.wait = 20s});
  user(documented_rights() + " resetkeys ~*seen*");
  auto locks = open_redis(url("app:secret@"));
  std::vector<LockError> unread;
  const auto all = locks.list({}, unread);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().name, "seen/x");
  ASSERT_EQ(unread.size(), 1U);
  EXPECT_EQ(unread.front().code(), errc::access_denied);
  EXPECT_THAT(unread.front().server_text(), HasSubstr("hidden"));
}

TEST_F(RedisAccess, ARightThatIsMissingInsideAScriptIsNamed) {
  for (const std::string right : {"get", "set", "mget", "time"}) {
    user("+@all ~* &* -" + right);
    error_code ec;
    EXPECT_THAT(connect_error(url("app:secret@"), &ec), HasSubstr("ACL SETUSER <user> +" + right));
    EXPECT_EQ(ec, errc::access_denied) << right;
  }
}

TEST_F(RedisAccess, WhatOnlySparesTimeMayBeForbidden) {
  for (const std::string right : {"exists", "ping"}) {
    user("+@all ~* &* -" + right);
    auto locks = open_redis(url("app:secret@", "&poll=30s"));
    auto lock = locks.lock("x");
    auto held = lock->acquire();
    EXPECT_FALSE(held.release()) << right;
    EXPECT_FALSE(locks.status("x").held) << right;
    held = lock->acquire();
    auto waiting = std::async(std::launch::async, [&] { return lock->acquire({.wait = 20s}); });
    ASSERT_TRUE(eventually(patience(), [&] { return locks.status("x").waiting.size() == 1; }));
    EXPECT_FALSE(held.release()) << right;
    auto next = waiting.get();
    EXPECT_TRUE(next) << right;
    EXPECT_FALSE(next.release()) << "who waited before it had the lock";
    EXPECT_FALSE(locks.status("x").held) << right;
  }
}

TEST_F(RedisAccess, WithoutConfigAndADeclarationExclusiveIsRefused) {
  user("+@all ~* &* -config");
  RedisClient admin(server_.port());
  admin.ask({"CONFIG", "SET", "appendonly", "yes"});
  admin.ask({"CONFIG", "SET", "appendfsync", "always"});
  error_code ec;
  EXPECT_THAT(connect_error(url("app:secret@", "&require=exclusive"), &ec),
              AllOf(HasSubstr("+config|get"), HasSubstr("durability=appendfsync-always")));
  EXPECT_EQ(ec, errc::config_unsafe);
  EXPECT_EQ(connect_error(url("app:secret@", "&require=exclusive&durability=appendfsync-always")),
            "");
  // The operator declares durability, and nothing else: eviction must be seen.
  user("+@all ~* &* -config -info");
  EXPECT_THAT(
      connect_error(url("app:secret@", "&require=exclusive&durability=appendfsync-always"), &ec),
      HasSubstr("+info"));
  EXPECT_EQ(ec, errc::config_unsafe);
}

TEST_F(RedisAccess, F36_ScriptingDeniedIsNamed) {
  user("+@all ~* &* -evalsha -eval");
  error_code ec;
  EXPECT_THAT(connect_error(url("app:secret@"), &ec), HasSubstr("'evalsha'"));
  EXPECT_EQ(ec, errc::config_unsafe);
  user("+@all ~* &* -eval");
  EXPECT_THAT(connect_error(url("app:secret@"), &ec), HasSubstr("'eval'"));
  EXPECT_EQ(ec, errc::config_unsafe);
}

TEST_F(RedisAccess, F36_ScriptingRenamedAwayIsNamed) {
  RedisServer server({"--rename-command", "EVAL", "", "--rename-command", "EVALSHA", ""});
  server.start();
  error_code ec;
  EXPECT_THAT(connect_error(redis_url(server.port()), &ec), HasSubstr("EVALSHA"));
  EXPECT_EQ(ec, errc::config_unsafe);
}

TEST_F(RedisAccess, AMissingKeyRightIsNamed) {
  user("+@all ~other:* &*");
  error_code ec;
  EXPECT_THAT(connect_error(url("app:secret@"), &ec), HasSubstr("NOPERM"));
  EXPECT_EQ(ec, errc::access_denied);
}

TEST_F(RedisAccess, WithoutTheChannelWaitersPoll) {
  user("+@all ~* resetchannels");
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(url("app:secret@", "&poll=100ms"), warnings);
  auto lock = locks.lock("x");
  auto held = lock->acquire();
  auto waiting = std::async(std::launch::async, [&] { return lock->acquire({.wait = 20s}); });
  ASSERT_TRUE(eventually(patience(), [&] { return warnings->has("waiters can only poll"); }));
  held.release();
  waiting.get().release();
  EXPECT_EQ(locks.inspect().front().capabilities->wake_up, WakeUp::poll);
}

TEST_F(RedisAccess, WithoutPublishWaitersPollAndItIsSaid) {
  user("+@all ~* &* -publish");
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(url("app:secret@", "&poll=100ms"), warnings);
  auto lock = locks.lock("x");
  auto held = lock->acquire();
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has("PUBLISH is refused"); }));
  const auto promised = locks.inspect().front().capabilities.value();
  EXPECT_EQ(promised.wake_up, WakeUp::poll);
  EXPECT_THAT(promised.notes, Contains(HasSubstr("+publish")));
  auto waiting = acquire_later(lock);
  ASSERT_TRUE(eventually(patience(), [&] { return locks.status("x").waiting.size() == 1; }));
  held.release();
  waiting.get().release();
}

TEST_F(RedisAccess, AnOldConnectionThatCannotBeKilledIsSaid) {
  for (const std::string right : {"-client|kill", "-client|id", "-info"}) {
    user("+@all ~* &* " + right);
    auto warnings = std::make_shared<WarningLog>();
    auto locks = open_redis(url("app:secret@"), warnings);
    locks.connect();
    client().ask({"CLIENT", "KILL", "USER", "app"});
    EXPECT_TRUE(eventually(patience(), [&] {
      return warnings->has("an old connection could not be killed");
    })) << right;
  }
}

TEST_F(RedisAccess, UnixSocketsAndDatabases) {
  TempDir folder("dlock-redis-unix");
  const auto path = (folder / "r.sock").string();
  RedisServer server({"--unixsocket", path});
  server.start();
  auto locks = open_redis("redis+unix://" + path + "?db=3");
  auto held = locks.lock("x")->acquire();
  RedisClient client(server.port());
  EXPECT_EQ(client.ask({"EXISTS", "dlock:{x}"}).integer, 0);
  client.ask({"SELECT", "3"});
  EXPECT_EQ(client.ask({"EXISTS", "dlock:{x}"}).integer, 1);
  EXPECT_THAT(connect_error("redis+unix://" + path + "?db=99&connect_timeout=3s"),
              HasSubstr("out of range"));
  EXPECT_THAT(connect_error("redis+unix:///nowhere/r.sock?connect_timeout=1s"),
              HasSubstr("/nowhere/r.sock"));
}

TEST_F(RedisAccess, NobodyListens) {
  Port port;
  error_code ec;
  EXPECT_THAT(
      connect_error("redis://127.0.0.1:" + std::to_string(port.number()) + "?connect_timeout=1s",
                    &ec),
      HasSubstr("refused"));
  EXPECT_EQ(ec, errc::unavailable);
}

TEST_F(RedisAccess, AVerdictEndsWithItsReason) {
  RedisServer server({"--appendonly", "yes", "--appendfsync", "everysec"});
  server.start();
  RedisClient admin(server.port());
  auto locks = open_redis(redis_url(server.port(), "&require=exclusive"));
  error_code ec;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 5s}, {}, ec));
  EXPECT_EQ(ec, errc::config_unsafe);
  admin.ask({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_TRUE(eventually(within(3s), [&] {
    return bool(locks.lock("x")->acquire({.wait = 5s}, {}, ec));
  })) << "it is read again after a refusal";
  EXPECT_NO_THROW(locks.connect());
  admin.ask({"CONFIG", "SET", "appendfsync", "everysec"});
  EXPECT_EQ(locks.inspect().at(0).error, errc::config_unsafe) << "inspect() says what is so now";
  EXPECT_THROW(locks.connect(), LockError);
}

TEST_F(RedisAccess, ExclusiveOnlyWithADurableAppendOnlyFile) {
  EXPECT_THAT(connect_error(url("", "&require=exclusive")), HasSubstr("appendonly yes"));
  RedisServer every_second({"--appendonly", "yes"});
  every_second.start();
  EXPECT_THAT(connect_error(redis_url(every_second.port(), "&require=exclusive")),
              HasSubstr("appendfsync always"));
  RedisServer durable({"--appendonly", "yes", "--appendfsync", "always"});
  durable.start();
  EXPECT_EQ(connect_error(redis_url(durable.port(), "&require=exclusive")), "");
  auto locks = open_redis(redis_url(durable.port()));
  locks.connect();
  const auto report = locks.inspect().front();
  EXPECT_THAT(report.capabilities->assumptions,
              Contains(Field(&Capabilities::Assumption::name, "server_clock_not_stepped")));
  // What it promises, it keeps: a kill and a restart lose nothing.
  auto held = locks.lock("x")->acquire();
  durable.kill9();
  durable.start();
  EXPECT_FALSE(open_redis(redis_url(durable.port())).lock("x")->try_acquire());
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::held; }));
  EXPECT_FALSE(held.release());
}

TEST_F(RedisAccess, WhereConfigIsForbiddenTheOperatorMayDeclare) {
  RedisServer durable(
      {"--appendonly", "yes", "--appendfsync", "always", "--rename-command", "CONFIG", ""});
  durable.start();
  EXPECT_THAT(connect_error(redis_url(durable.port(), "&require=exclusive")),
              HasSubstr("durability=appendfsync-always"));
  EXPECT_EQ(
      connect_error(redis_url(durable.port(), "&require=exclusive&durability=appendfsync-always")),
      "");
}

TEST_F(RedisAccess, F39_AReplicaMakesItBestEffort) {
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(server_.port())});
  replica.start();
  RedisClient client(server_.port());
  ASSERT_TRUE(eventually(patience(),
                         [&] { return client.info("replication", "connected_slaves") == "1"; }));
  EXPECT_THAT(connect_error(url("", "&require=exclusive")), HasSubstr("without replicas"));
  EXPECT_THAT(connect_error(redis_url(replica.port(), "&connect_timeout=1s")),
              HasSubstr("replica"));
}

}  // namespace
}  // namespace dlock::testkit

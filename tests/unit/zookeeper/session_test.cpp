// SPDX-License-Identifier: Apache-2.0
//
// The session under virtual time, with a client library that records what is asked of it: when it
// asks, what it reports, and that it leaves no timer behind.
#include "backends/zookeeper/wire/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <string>
#include <vector>

#include "backends/zookeeper/error.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/counting_env.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeClient final : public Client {
 public:
  FakeClient(Env& env, Options client_options, Listener& heard)
      : options(std::move(client_options)), listener(heard), env_(env) {}

  bool start() override { return starts; }
  void close(Job done) override {
    log.emplace_back("close");
    is_connected = false;
    if (closes) env_.post(std::move(done));
  }
  void abandon() override { log.emplace_back("abandon"); }
  bool connected() const noexcept override { return is_connected; }
  std::int64_t session_id() const noexcept override { return 7; }
  std::chrono::milliseconds session_timeout() const noexcept override { return granted; }
  TimePoint created() const noexcept override { return created_at; }
  std::string server() const override { return "1.2.3.4:2181"; }
  bool turned_away() const noexcept override { return is_turned_away; }
  std::string tried() const override { return what_was_tried; }
  void set_addresses(const std::string& addresses) override {
    log.push_back("set_addresses " + addresses);
  }
  void authenticate(const std::string& digest) override { log.push_back("authenticate " + digest); }

  PendingReply create(const std::string&, std::string_view, Mode) override { return refused(); }
  PendingReply remove(const std::string&) override { return refused(); }
  PendingReply set(const std::string&, std::string_view) override { return refused(); }
  PendingReply set_version(const std::string&, std::string_view, std::int32_t) override {
    return refused();
  }
  PendingReply remove_version(const std::string&, std::int32_t) override { return refused(); }
  PendingReply exists(const std::string& path) override { return ask("exists " + path, false); }
  PendingReply get(const std::string& path) override { return ask("get " + path, false); }
  PendingReply get_and_watch(const std::string& path) override {
    return ask("get_and_watch " + path, false);
  }
  PendingReply exists_and_watch(const std::string& path) override {
    return ask("exists_and_watch " + path, false);
  }
  PendingReply children(const std::string&) override { return refused(); }
  PendingReply sync(const std::string&) override { return refused(); }
  PendingReply prove(const std::string& path) override { return ask("prove " + path, true); }
  PendingReply mark_and_remove(const std::string&, std::string_view) override { return refused(); }
  PendingReply mark_and_replace(const std::string&, std::string_view, const std::string&,
                                std::string_view, Mode) override {
    return refused();
  }
  PendingReply change_if(const Check&, const Change&) override { return refused(); }
  void forget_watch(const std::string& path) override { log.push_back("forget_watch " + path); }

  void connect() {
    is_connected = true;
    listener.on_connected();
  }
  void disconnect() {
    is_connected = false;
    listener.on_disconnected();
  }
  /// Returns what was asked since the last call.
  std::vector<std::string> taken() { return std::exchange(log, {}); }

  const Options options;
  Listener& listener;
  bool starts = true;
  bool closes = true;
  bool answers = true;
  bool is_connected = false;
  bool is_turned_away = false;
  std::chrono::milliseconds granted{12'000};
  TimePoint created_at{};
  std::string what_was_tried;
  std::vector<std::string> log;

 private:
  void cork(bool) noexcept override {}
  PendingReply ask(std::string what, bool committed) {
    log.push_back(std::move(what));
    PendingReply pending(env_);
    if (!answers) return pending;
    env_.post([this, pending, committed, sent = env_.now()] {
      listener.on_answer(sent, env_.now(), committed);
      pending.set({ZOK, {}, {}, {}});
    });
    return pending;
  }
  PendingReply refused() {
    ADD_FAILURE() << "the session does not ask this";
    return PendingReply(env_);
  }

  Env& env_;
};

struct FakeLibrary final : Library {
  std::shared_ptr<Client> make_client(Env& env, Client::Options options,
                                      Client::Listener& listener) override {
    auto client = std::make_shared<FakeClient>(env, std::move(options), listener);
    client->starts = starts;
    client->granted = granted;
    client->created_at = env.now();
    made.push_back(client);
    made_at.push_back(env.now());
    return client;
  }
  asio::awaitable<std::string> ask_server(Env&, std::string, std::string, TimePoint) override {
    co_return std::string();
  }

  bool starts = true;
  std::chrono::milliseconds granted{12'000};
  std::vector<std::shared_ptr<FakeClient>> made;
  std::vector<TimePoint> made_at;
};

struct Sink final : EventSink {
  void on_link_up() override { heard.emplace_back("up"); }
  void on_link_down(const Failure& why) override {
    EXPECT_EQ(why.error, Error::connection_lost);
    heard.push_back("down: " + why.text);
  }
  void on_session_gone(LossReason why) override {
    EXPECT_EQ(why, LossReason::session_ended);
    heard.emplace_back("gone");
  }
  void on_claim_gone(const ClaimPtr&, LossReason) override { heard.emplace_back("claim"); }
  void on_capabilities_changed() override { heard.emplace_back("capabilities"); }
  void on_warning(std::string_view text) override {
    heard.push_back("warning: " + std::string(text));
  }
  std::vector<std::string> taken() { return std::exchange(heard, {}); }

  std::vector<std::string> heard;
};

constexpr auto kTimeout = 12'000ms;  // a quarter is 3 s
constexpr const char* kAddresses = "127.0.0.1:1,127.0.0.1:2";

class ZooKeeperSession : public testing::Test {
 protected:
  ZooKeeperSession() {
    settings_.endpoints = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
    settings_.timeout = kTimeout;
    settings_.root = "/dlock";
  }
  ~ZooKeeperSession() override {
    time_.run_for(0s);  // the answers to the last requests
    if (session_) session_->stop();
    session_.reset();
    EXPECT_EQ(env_.timers(), 0U) << "a timer is left";
    time_.run_for(1min);
  }

  void make() { session_ = std::make_shared<Session>(env_, settings_, library_, sink_); }
  /// Begins to open the session; `opened_` is set at its end.
  void open(Duration patience = 30s) {
    opened_.reset();
    asio::co_spawn(env_.executor(), session_->open(env_.now() + patience),
                   [this](const std::exception_ptr& thrown, Failure failure) {
                     EXPECT_FALSE(thrown);
                     opened_ = std::move(failure);
                   });
    time_.run_for(0s);
  }
  /// Makes a session that is connected and announced.
  void begin() {
    make();
    open();
    ASSERT_EQ(library_.made.size(), 1U);
    client().connect();
    time_.run_for(0s);
    ASSERT_TRUE(opened_);
    EXPECT_FALSE(opened_->error);
    session_->announce();
    session_->on_beat = [this] { events_.emplace_back("beat"); };
    session_->on_down = [this] { events_.emplace_back("down"); };
    session_->on_over = [this] { events_.emplace_back("over"); };
    session_->on_new = [this] { events_.emplace_back("new"); };
    session_->on_children = [this](const std::string& path) {
      events_.push_back("children of " + path);
    };
  }
  template <class Start>
  void spawn(Start&& start) {
    asio::co_spawn(env_.executor(), start(), asio::detached);
    time_.run_for(0s);
  }
  void close(bool keeps_it = false) {
    spawn([this, keeps_it] { return session_->close(env_.now() + 5s, keeps_it); });
  }

  FakeClient& client() { return *library_.made.back(); }
  std::vector<std::string> events() { return std::exchange(events_, {}); }

  tests::VirtualEnv time_;
  tests::CountingEnv env_{time_};
  FakeLibrary library_;
  Sink sink_;
  Session::Settings settings_;
  std::shared_ptr<Session> session_;
  std::optional<Failure> opened_;
  std::vector<std::string> events_;
};

TEST_F(ZooKeeperSession, OpensWithItsSettings) {
  settings_.username = "user";
  settings_.password = std::make_shared<Password>("secret");
  settings_.creator_acl = true;
  begin();
  const auto& options = client().options;
  EXPECT_EQ(options.addresses, kAddresses);
  EXPECT_EQ(options.session_timeout, kTimeout);
  EXPECT_EQ(options.digest, "user:secret");
  EXPECT_TRUE(options.creator_acl);
  EXPECT_EQ(options.least_pause, Duration::zero());
  EXPECT_EQ(options.tries_spent, session_->tries_spent());
  EXPECT_EQ(session_->number(), 1U);
  EXPECT_EQ(session_->addresses(), kAddresses);
  EXPECT_EQ(session_->server(), "1.2.3.4:2181");
  EXPECT_EQ(session_->timeout(), kTimeout);
  EXPECT_EQ(session_->pending_attempt(), "");
  EXPECT_FALSE(session_->link_failure().error);
  EXPECT_TRUE(session_->is_ready(env_.now() + 1ns));
  EXPECT_FALSE(session_->is_ready(env_.now()));
  EXPECT_EQ(session_->validity().until, env_.now() + 8s);
  EXPECT_EQ(session_->validity().renew_at, env_.now() + 1560ms);
  EXPECT_EQ(env_.timers(), 1U) << "the heartbeat alone";
  EXPECT_THAT(sink_.taken(), IsEmpty()) << "nothing is reported before the announcement";
}

TEST_F(ZooKeeperSession, NamesTheServersThatItTriedInVain) {
  make();
  open(2s);
  EXPECT_FALSE(opened_);
  EXPECT_FALSE(session_->link_failure().error);
  EXPECT_EQ(session_->pending_attempt(), std::string("tried ") + kAddresses);
  client().listener.on_attempt_failed();
  client().what_was_tried = "127.0.0.1:1 refused the connection";
  EXPECT_EQ(session_->link_failure().error, Error::not_connected);
  EXPECT_EQ(session_->link_failure().text, "tried 127.0.0.1:1 refused the connection");
  time_.run_for(1999ms);
  EXPECT_FALSE(opened_);
  time_.run_for(1ms);
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, Error::not_connected);
  EXPECT_EQ(opened_->text, "tried 127.0.0.1:1 refused the connection");
  // The next one does not make another client.
  open();
  client().connect();
  time_.run_for(0s);
  ASSERT_TRUE(opened_);
  EXPECT_FALSE(opened_->error);
  EXPECT_EQ(library_.made.size(), 1U);
  EXPECT_FALSE(session_->link_failure().error);
}

TEST_F(ZooKeeperSession, AFailedStartIsForWantOfADescriptor) {
  make();
  library_.starts = false;
  open();
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, Error::out_of_descriptors);
  library_.starts = true;
  open();
  client().connect();
  time_.run_for(0s);
  EXPECT_FALSE(opened_->error);
  EXPECT_EQ(session_->number(), 2U);
}

TEST_F(ZooKeeperSession, OpenEndsWhenTheSessionIsClosed) {
  make();
  open();
  close();
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, Error::closed);
  EXPECT_THAT(client().taken(), ElementsAre("close"));
  open();
  EXPECT_EQ(opened_->error, Error::closed);
}

TEST_F(ZooKeeperSession, ReadsOnceAQuarterWhileNoClaimWaits) {
  begin();
  time_.run_for(3s - 1ns);
  EXPECT_THAT(client().taken(), IsEmpty());
  time_.run_for(1ns);
  EXPECT_THAT(client().taken(), ElementsAre("exists /dlock"));
  EXPECT_THAT(events(), ElementsAre("beat"));
  // An answer to another request delays the next read, but not the beat.
  time_.run_for(1s);
  client().listener.on_answer(env_.now(), env_.now(), false);
  EXPECT_EQ(session_->last_answer(), env_.now());
  time_.run_for(2s);
  EXPECT_THAT(client().taken(), IsEmpty());
  EXPECT_THAT(events(), ElementsAre("beat"));
  time_.run_for(1s - 1ns);
  EXPECT_THAT(client().taken(), IsEmpty());
  time_.run_for(1ns);
  EXPECT_THAT(client().taken(), ElementsAre("exists /dlock"));
  EXPECT_THAT(events(), ElementsAre("beat"));
  time_.run_for(3s);
  EXPECT_THAT(client().taken(), ElementsAre("exists /dlock"));
}

TEST_F(ZooKeeperSession, WritesWhileAClaimWaits) {
  begin();
  auto waiting = std::make_optional<Session::Waiting>(session_);
  time_.run_for(3s);
  EXPECT_THAT(client().taken(), ElementsAre("prove /dlock"));
  const auto written = env_.now();
  EXPECT_EQ(session_->validity().renew_at, written + 1560ms);
  EXPECT_EQ(session_->validity().until, written + 8s) << "the session is the base of the first";
  // A write of a holder shortly before the beat: the beat waits until one is due.
  time_.run_for(2s);
  client().listener.on_answer(env_.now(), env_.now(), true);
  time_.run_for(1s);
  EXPECT_THAT(client().taken(), IsEmpty());
  time_.run_for(560ms - 1ns);
  EXPECT_THAT(client().taken(), IsEmpty());
  time_.run_for(1ns);
  EXPECT_THAT(client().taken(), ElementsAre("prove /dlock"));
  waiting.reset();
  time_.run_for(3s);
  EXPECT_THAT(client().taken(), ElementsAre("exists /dlock"));
}

TEST_F(ZooKeeperSession, ProvesOnDemand) {
  begin();
  std::optional<Reply> reply;
  const auto prove = [&](Duration patience) {
    reply.reset();
    asio::co_spawn(env_.executor(), session_->prove(env_.now() + patience),
                   [&](const std::exception_ptr&, Reply found) { reply = std::move(found); });
    time_.run_for(0s);
  };
  prove(1s);
  EXPECT_THAT(client().taken(), ElementsAre("prove /dlock"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->rc, ZOK);
  client().answers = false;
  prove(1s);
  time_.run_for(1s - 1ns);
  EXPECT_FALSE(reply);
  time_.run_for(1ns);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->rc, ZOPERATIONTIMEOUT);
}

TEST_F(ZooKeeperSession, ALinkThatIsBackIsReportedWithTheSameSession) {
  begin();
  client().what_was_tried = "127.0.0.1:1 hung up";
  client().disconnect();
  EXPECT_THAT(events(), ElementsAre("down"));
  EXPECT_THAT(sink_.taken(), ElementsAre("down: tried 127.0.0.1:1 hung up"));
  EXPECT_EQ(session_->link_failure().error, Error::not_connected);
  time_.run_for(11s);
  EXPECT_THAT(client().taken(), IsEmpty()) << "no heartbeat without a connection";
  client().connect();
  EXPECT_THAT(events(), ElementsAre("beat"));
  EXPECT_THAT(sink_.taken(), ElementsAre("up"));
  EXPECT_EQ(env_.timers(), 1U) << "the heartbeat alone";
  time_.run_for(3s);
  EXPECT_THAT(client().taken(), ElementsAre("exists /dlock"));
  EXPECT_EQ(library_.made.size(), 1U);
}

TEST_F(ZooKeeperSession, WaitsForTheLinkUpToTheDeadline) {
  begin();
  client().disconnect();
  std::optional<bool> ready;
  const auto wait = [&](Duration patience) {
    ready.reset();
    asio::co_spawn(env_.executor(), session_->ready(env_.now() + patience),
                   [&](const std::exception_ptr&, bool found) { ready = found; });
    time_.run_for(0s);
  };
  wait(1s);
  time_.run_for(1s - 1ns);
  EXPECT_FALSE(ready);
  time_.run_for(1ns);
  EXPECT_EQ(ready, false);
  wait(1s);
  client().connect();
  time_.run_for(0s);
  EXPECT_EQ(ready, true);
  wait(0s);
  EXPECT_EQ(ready, false) << "the deadline has passed";
}

TEST_F(ZooKeeperSession, ASessionThatIsOverIsMadeAgainAtOnce) {
  begin();
  time_.run_for(1600ms);
  auto& first = client();
  first.taken();
  first.is_connected = false;
  first.listener.on_session_over(false);
  EXPECT_EQ(library_.made.size(), 1U) << "not inside a step of the client";
  time_.run_for(0s);
  EXPECT_THAT(first.taken(), ElementsAre("close"));
  EXPECT_EQ(library_.made.size(), 2U);
  EXPECT_EQ(session_->number(), 2U);
  EXPECT_THAT(events(), ElementsAre("over"));
  EXPECT_THAT(sink_.taken(), ElementsAre("gone"));
  EXPECT_EQ(env_.timers(), 0U);
  time_.run_for(1s);
  client().connect();
  EXPECT_THAT(events(), ElementsAre("new", "beat"));
  EXPECT_THAT(sink_.taken(), ElementsAre("up"));
  EXPECT_EQ(session_->validity().until, env_.now() + 7s) << "from the making of the new one";
}

TEST_F(ZooKeeperSession, ASessionThatEndsAtOnceIsMadeAgainAfterAPause) {
  begin();
  time_.run_for(1600ms - 1ns);
  client().is_connected = false;
  client().listener.on_session_over(false);
  time_.run_for(0s);
  EXPECT_EQ(library_.made.size(), 1U);
  EXPECT_EQ(session_->number(), 2U) << "what the old one made is gone";
  EXPECT_FALSE(session_->connected());
  time_.run_for(1ns);
  EXPECT_EQ(library_.made.size(), 2U);
  EXPECT_EQ(session_->number(), 3U);
  EXPECT_EQ(env_.timers(), 0U);
}

TEST_F(ZooKeeperSession, WithoutADescriptorItIsTriedAgain) {
  begin();
  time_.run_for(2s);
  library_.starts = false;
  client().is_connected = false;
  client().listener.on_session_over(false);
  time_.run_for(0s);
  EXPECT_EQ(library_.made.size(), 2U);
  time_.run_for(1600ms - 1ns);
  EXPECT_EQ(library_.made.size(), 2U);
  library_.starts = true;
  time_.run_for(1ns);
  EXPECT_EQ(library_.made.size(), 3U);
  EXPECT_EQ(env_.timers(), 0U);
}

TEST_F(ZooKeeperSession, ARefusedPasswordIsTriedAgainAfterAPause) {
  begin();
  time_.run_for(2s);
  client().is_connected = false;
  client().listener.on_session_over(true);
  time_.run_for(0s);
  EXPECT_EQ(library_.made.size(), 1U);
  EXPECT_THAT(
      sink_.taken(),
      ElementsAre("warning: " + make_error_code(Error::authentication_failed).message(), "gone"));
  std::optional<bool> ready;
  asio::co_spawn(env_.executor(), session_->ready(env_.now() + 1s),
                 [&](const std::exception_ptr&, bool found) { ready = found; });
  time_.run_for(0s);
  EXPECT_EQ(ready, false) << "it does not wait";
}

TEST_F(ZooKeeperSession, AfterARefusedPasswordALaterTryCountsAgain) {
  begin();
  time_.run_for(2s);
  client().is_connected = false;
  client().listener.on_session_over(true);
  time_.run_for(1600ms - 1ns);
  EXPECT_EQ(library_.made.size(), 1U);
  time_.run_for(1ns);
  EXPECT_EQ(library_.made.size(), 2U);
  client().connect();
  time_.run_for(0s);
  EXPECT_TRUE(session_->is_ready(env_.now() + 1s));
}

TEST_F(ZooKeeperSession, OpenReportsARefusedPassword) {
  make();
  open();
  client().listener.on_session_over(true);
  time_.run_for(0s);
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, Error::authentication_failed);
}

// -- A session that its servers may have forgotten
// ---------------------------------------------------

TEST_F(ZooKeeperSession, IsKeptWhileItsServersAreOnlyAway) {
  begin();
  client().disconnect();
  time_.run_for(10min);
  EXPECT_EQ(library_.made.size(), 1U);
  EXPECT_EQ(env_.timers(), 1U);
  EXPECT_EQ(session_->number(), 1U);
}

TEST_F(ZooKeeperSession, IsReplacedWhenItsServersLetANewcomerInAndNotIt) {
  begin();
  auto& old = client();
  old.disconnect();
  old.is_turned_away = true;
  sink_.taken();
  const auto lost = env_.now();
  time_.run_for(kTimeout - 1ns);
  EXPECT_EQ(library_.made.size(), 1U);
  time_.run_for(1ns);
  ASSERT_EQ(library_.made.size(), 2U);
  auto& newcomer = client();
  EXPECT_EQ(newcomer.options.least_pause, 2s);
  EXPECT_EQ(newcomer.options.addresses, kAddresses);
  newcomer.connect();
  EXPECT_THAT(sink_.taken(), IsEmpty()) << "no claim lives in it";
  time_.run_for(2s - 1ns);
  EXPECT_THAT(newcomer.taken(), IsEmpty());
  time_.run_for(1ns);
  EXPECT_THAT(newcomer.taken(), ElementsAre("close"));
  EXPECT_EQ(session_->number(), 1U) << "the old one is tried once more";
  time_.run_for(2s - 1ns);
  EXPECT_EQ(session_->number(), 1U);
  time_.run_for(1ns);
  EXPECT_EQ(session_->number(), 2U);
  EXPECT_EQ(library_.made.size(), 3U);
  EXPECT_EQ(library_.made_at.back(), lost + 16s);
  EXPECT_THAT(old.taken(), ElementsAre("close"));
  EXPECT_THAT(sink_.taken(), ElementsAre("gone"));
  EXPECT_EQ(env_.timers(), 0U);
}

TEST_F(ZooKeeperSession, IsKeptWhenItsServersAcceptItAfterTheNewcomer) {
  begin();
  client().disconnect();
  client().is_turned_away = true;
  time_.run_for(kTimeout);
  client().connect();  // the newcomer
  time_.run_for(2s);
  library_.made.front()->connect();
  EXPECT_EQ(env_.timers(), 1U) << "the heartbeat alone";
  // The session forgets the result of the newcomer.
  library_.made.front()->disconnect();
  time_.run_for(kTimeout + 1s);
  EXPECT_EQ(session_->number(), 1U);
  EXPECT_EQ(library_.made.size(), 3U) << "another newcomer is tried first";
}

TEST_F(ZooKeeperSession, IsKeptWhileNoNewcomerIsLetInEither) {
  begin();
  client().disconnect();
  client().is_turned_away = true;
  time_.run_for(kTimeout);
  EXPECT_EQ(library_.made.size(), 2U);
  time_.run_for(2s);  // the newcomer is given up
  EXPECT_THAT(client().taken(), ElementsAre("close"));
  time_.run_for(5s - 1ns);
  EXPECT_EQ(library_.made.size(), 2U);
  time_.run_for(1ns);
  EXPECT_EQ(library_.made.size(), 3U) << "the next one";
  EXPECT_EQ(session_->number(), 1U);
}

TEST_F(ZooKeeperSession, ANewcomerWithoutADescriptorIsTriedAgain) {
  begin();
  client().disconnect();
  library_.made.front()->is_turned_away = true;
  library_.starts = false;
  time_.run_for(kTimeout);
  EXPECT_EQ(library_.made.size(), 2U);
  time_.run_for(5s - 1ns);
  EXPECT_EQ(library_.made.size(), 2U);
  time_.run_for(1ns);
  EXPECT_EQ(library_.made.size(), 3U);
}

// -- Watches
// -----------------------------------------------------------------------------------------

class ZooKeeperWatches : public ZooKeeperSession {
 protected:
  void SetUp() override { begin(); }
  std::unique_ptr<Session::Watch> watch(const std::string& path, const char* name = "") {
    return session_->watch(path, [this, path, name](WatchEvent event) {
      events_.push_back(name + path + " " + std::to_string(static_cast<int>(event)));
    });
  }
  void tell(const std::string& path, WatchEvent event) { client().listener.on_watch(path, event); }
  static std::string said(const std::string& path, WatchEvent event) {
    return path + " " + std::to_string(static_cast<int>(event));
  }
};

TEST_F(ZooKeeperWatches, AreAskedForWithTheRequestThatFitsTheNode) {
  const auto there = watch("/a");
  const auto maybe = session_->watch_always("/b", [](WatchEvent) {});
  EXPECT_FALSE(session_->watching("/a"));
  session_->set_watch("/a");
  session_->set_watch("/b");
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /a", "exists_and_watch /b"));
  EXPECT_TRUE(session_->watching("/a")) << "asked for is enough";
  tell("/a", WatchEvent::absent);
  EXPECT_FALSE(session_->watching("/a"));
  tell("/b", WatchEvent::set);
  EXPECT_TRUE(session_->watching("/b"));
  EXPECT_THAT(events(), ElementsAre(said("/a", WatchEvent::absent)));
}

TEST_F(ZooKeeperWatches, EachShareIsNotifiedAndTheLastOneRemovesIt) {
  auto one = watch("/a", "1 "), other = watch("/a", "2 ");
  session_->set_watch("/a");
  tell("/a", WatchEvent::written);
  EXPECT_THAT(events(), ElementsAre("1 " + said("/a", WatchEvent::written),
                                    "2 " + said("/a", WatchEvent::written)));
  client().taken();
  one.reset();
  EXPECT_THAT(client().taken(), IsEmpty());
  other.reset();
  EXPECT_THAT(client().taken(), ElementsAre("forget_watch /a"));
  EXPECT_FALSE(session_->watching("/a"));
}

TEST_F(ZooKeeperWatches, OneThatIsUsedUpIsNotTakenOff) {
  for (const auto event : {WatchEvent::deleted, WatchEvent::changed, WatchEvent::failed}) {
    auto share = watch("/a");
    session_->set_watch("/a");
    tell("/a", WatchEvent::set);
    tell("/a", event);
    EXPECT_FALSE(session_->watching("/a"));
    EXPECT_THAT(events(), ElementsAre(said("/a", WatchEvent::set), said("/a", event)));
    client().taken();
    share.reset();
    EXPECT_THAT(client().taken(), IsEmpty());
  }
}

TEST_F(ZooKeeperWatches, OneThatIsGivenUpBeforeItsAnswerIsTakenOffWithIt) {
  auto share = watch("/a");
  session_->set_watch("/a");
  client().taken();
  share.reset();
  EXPECT_THAT(client().taken(), IsEmpty());
  tell("/a", WatchEvent::set);
  EXPECT_THAT(client().taken(), ElementsAre("forget_watch /a"));
  tell("/a", WatchEvent::changed);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(ZooKeeperWatches, ChildrenAreReportedWithTheirParent) {
  tell("/parent", WatchEvent::children);
  tell("/parent", WatchEvent::deleted);
  tell("/parent", WatchEvent::changed);
  EXPECT_THAT(events(), ElementsAre("children of /parent", "children of /parent"));
  session_->on_children = nullptr;
  tell("/parent", WatchEvent::children);
  tell("/parent", WatchEvent::deleted);
}

TEST_F(ZooKeeperWatches, AreSetAgainWithTheNextConnection) {
  const auto a = watch("/a"), b = watch("/b"), c = watch("/c");
  session_->set_watch("/a");
  session_->set_watch("/b");
  tell("/a", WatchEvent::set);
  tell("/b", WatchEvent::absent);
  client().taken();
  client().disconnect();
  EXPECT_THAT(client().taken(), testing::UnorderedElementsAre("forget_watch /a", "forget_watch /b",
                                                              "forget_watch /c"));
  EXPECT_FALSE(session_->watching("/a"));
  std::optional<Reply> reply;
  const auto pending = session_->set_watch("/c");
  asio::co_spawn(env_.executor(), pending.get_until(env_.now() + 1s),
                 [&](const std::exception_ptr&, std::optional<Reply> found) { reply = found; });
  time_.run_for(0s);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->rc, ZCONNECTIONLOSS);
  client().connect();
  EXPECT_THAT(client().taken(),
              ElementsAre("get_and_watch /b", "get_and_watch /c", "get_and_watch /a"));
}

TEST_F(ZooKeeperWatches, ThoseThatWereNotSetAreSetFirstAndThenThoseThatWereSetLast) {
  const auto a = watch("/a"), b = watch("/b"), c = watch("/c"), d = watch("/d");
  for (const auto* path : {"/a", "/b", "/c", "/d"}) session_->set_watch(path);
  for (const auto* path : {"/a", "/b", "/c", "/d"}) tell(path, WatchEvent::set);
  client().disconnect();
  client().taken();
  client().connect();
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /d", "get_and_watch /c",
                                            "get_and_watch /b", "get_and_watch /a"));
  for (const auto* path : {"/d", "/c"}) tell(path, WatchEvent::set);
  for (const auto* path : {"/b", "/a"}) tell(path, WatchEvent::failed);
  client().disconnect();
  client().taken();
  client().connect();
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /a", "get_and_watch /b",
                                            "get_and_watch /c", "get_and_watch /d"));
}

TEST_F(ZooKeeperWatches, OneThatWasGivenUpMeanwhileIsNotSetAgain) {
  auto a = watch("/a");
  session_->set_watch("/a");
  tell("/a", WatchEvent::set);
  client().disconnect();
  client().taken();
  a.reset();
  EXPECT_THAT(client().taken(), IsEmpty()) << "there is no connection to take it off";
  client().connect();
  EXPECT_THAT(client().taken(), IsEmpty());
}

TEST_F(ZooKeeperWatches, EndWithTheirSession) {
  auto a = watch("/a");
  session_->set_watch("/a");
  time_.run_for(2s);
  client().is_connected = false;
  client().listener.on_session_over(false);
  time_.run_for(0s);
  client().connect();
  auto again = watch("/a");
  session_->set_watch("/a");
  tell("/a", WatchEvent::set);
  client().taken();
  a.reset();  // it belongs to the session before
  EXPECT_THAT(client().taken(), IsEmpty());
  again.reset();
  EXPECT_THAT(client().taken(), ElementsAre("forget_watch /a"));
}

TEST_F(ZooKeeperWatches, InTurnNoMoreThan512AreAskedForAtOnce) {
  std::vector<std::unique_ptr<Session::Watch>> all;
  for (int i = 0; i < 514; ++i) {
    all.push_back(watch("/" + std::to_string(i)));
    session_->set_watch_in_turn("/" + std::to_string(i));
  }
  session_->set_watch_in_turn("/0");  // asked for already
  EXPECT_EQ(client().taken().size(), 512U);
  tell("/5", WatchEvent::changed);  // no answer
  EXPECT_THAT(client().taken(), IsEmpty());
  tell("/7", WatchEvent::absent);
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /512"));
  tell("/8", WatchEvent::set);
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /513"));
  tell("/9", WatchEvent::set);
  EXPECT_THAT(client().taken(), IsEmpty());
  session_->set_watch_in_turn("/9");  // it is watched
  EXPECT_THAT(client().taken(), IsEmpty());
  all.clear();
}

TEST_F(ZooKeeperWatches, InTurnOneThatWasGivenUpIsPassedOver) {
  std::vector<std::unique_ptr<Session::Watch>> all;
  for (int i = 0; i < 512; ++i) {
    all.push_back(watch("/" + std::to_string(i)));
    session_->set_watch_in_turn("/" + std::to_string(i));
  }
  auto gone = watch("/gone");
  session_->set_watch_in_turn("/gone");
  const auto next = watch("/next");
  session_->set_watch_in_turn("/next");
  client().taken();
  gone.reset();
  tell("/1", WatchEvent::set);
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /next"));
}

// -- The end
// -----------------------------------------------------------------------------------------

TEST_F(ZooKeeperSession, ClosingEndsTheClientAndAllTimers) {
  begin();
  client().disconnect();
  close();
  EXPECT_EQ(env_.timers(), 0U);
  EXPECT_THAT(client().taken(), ElementsAre("close"));
  client().listener.on_session_over(false);
  time_.run_for(1min);
  EXPECT_EQ(library_.made.size(), 1U) << "it is not made again";
}

TEST_F(ZooKeeperSession, ClosingCanLeaveTheSessionToItsTimeout) {
  begin();
  close(true);
  EXPECT_THAT(client().taken(), ElementsAre("abandon", "close"));
}

TEST_F(ZooKeeperSession, ClosingEndsAtItsDeadline) {
  begin();
  client().closes = false;
  bool closed = false;
  asio::co_spawn(env_.executor(), session_->close(env_.now() + 5s),
                 [&](const std::exception_ptr&) { closed = true; });
  time_.run_for(5s - 1ns);
  EXPECT_FALSE(closed);
  time_.run_for(1ns);
  EXPECT_TRUE(closed);
}

TEST_F(ZooKeeperSession, StoppingLeavesNothing) {
  begin();
  client().disconnect();
  client().is_turned_away = true;
  time_.run_for(kTimeout);
  EXPECT_EQ(library_.made.size(), 2U);
  session_->stop();
  EXPECT_EQ(env_.timers(), 0U);
  EXPECT_EQ(library_.made.front().use_count(), 1);
  EXPECT_EQ(library_.made.back().use_count(), 1) << "the newcomer, too";
}

TEST_F(ZooKeeperSession, ItsDestructorLeavesNoTimer) {
  begin();
  client().disconnect();
  EXPECT_GT(env_.timers(), 0U);
  session_.reset();
  EXPECT_EQ(env_.timers(), 0U);
}

TEST_F(ZooKeeperSession, AfterADropItIsOpenedAgain) {
  begin();
  const auto share = session_->watch("/a", [](WatchEvent) {});
  session_->set_watch("/a");
  auto& first = client();
  first.taken();
  spawn([this] { return session_->drop(env_.now() + 1s); });
  EXPECT_THAT(first.taken(), ElementsAre("close"));
  EXPECT_EQ(env_.timers(), 0U);
  EXPECT_EQ(session_->pending_attempt(), "");
  session_->ask_for(20s);
  open();
  ASSERT_EQ(library_.made.size(), 2U);
  EXPECT_EQ(client().options.session_timeout, 20s);
  EXPECT_EQ(session_->number(), 2U);
  client().connect();
  EXPECT_THAT(client().taken(), ElementsAre("get_and_watch /a"));
}

// -- Passwords and names
// -----------------------------------------------------------------------------

TEST_F(ZooKeeperSession, APasswordFileIsReadAgainWhenAccessIsDenied) {
  const testkit::TempDir folder;
  const auto file = (folder / "password").string();
  testkit::write_file(file, "old");
  settings_.username = "user";
  settings_.password = std::make_shared<Password>("old", file);
  begin();
  EXPECT_EQ(client().options.digest, "user:old");
  client().listener.on_access_denied();
  time_.run_for(0s);
  EXPECT_THAT(client().taken(), IsEmpty()) << "it is the same";
  testkit::write_file(file, "new");
  client().listener.on_access_denied();
  time_.run_for(0s);
  EXPECT_THAT(client().taken(), ElementsAre("authenticate user:new"));
  client().listener.on_access_denied();
  time_.run_for(0s);
  EXPECT_THAT(client().taken(), IsEmpty());
  // The next session begins with what the file says then.
  testkit::write_file(file, "newest");
  client().disconnect();
  time_.run_for(2s);
  client().listener.on_session_over(false);
  time_.run_for(0s);
  EXPECT_EQ(client().options.digest, "user:newest");
}

TEST_F(ZooKeeperSession, ANameWithoutAnAnswerIsReportedAtTheDeadline) {
  using Unbounded = tests::CountingEnv::Unbounded;
  settings_.endpoints = {{"localhost", 2181}};
  for (const auto unbounded : {Unbounded::never_begin, Unbounded::never_end}) {
    env_.unbounded = unbounded;
    make();
    open(2s);
    time_.run_for(2s - 1ns);
    EXPECT_FALSE(opened_);
    time_.run_for(1ns);
    ASSERT_TRUE(opened_);
    const bool begun = unbounded == Unbounded::never_end;
    EXPECT_EQ(opened_->error, begun ? Error::unknown_host : Error::out_of_threads);
    EXPECT_EQ(opened_->text, begun ? "no answer from the name server in time" : "");
    EXPECT_THAT(library_.made, IsEmpty());
  }
}

TEST_F(ZooKeeperSession, ANameWithoutAnAnswerDelaysTheOthersByAQuarterOfASecond) {
  settings_.endpoints = {{"127.0.0.1", 1}, {"localhost", 2181}};
  env_.unbounded = tests::CountingEnv::Unbounded::never_end;
  make();
  open(30s);
  time_.run_for(250ms - 1ns);
  EXPECT_THAT(library_.made, IsEmpty());
  time_.run_for(1ns);
  ASSERT_EQ(library_.made.size(), 1U);
  EXPECT_EQ(client().options.addresses, "127.0.0.1:1");
  close();
}

TEST_F(ZooKeeperSession, ClosingEndsALookup) {
  settings_.endpoints = {{"localhost", 2181}};
  env_.unbounded = tests::CountingEnv::Unbounded::never_end;
  make();
  open(30s);
  close();
  ASSERT_TRUE(opened_);
  EXPECT_EQ(opened_->error, Error::closed);
  EXPECT_EQ(env_.timers(), 0U);
}

TEST_F(ZooKeeperSession, NamesAreLookedUpWhileNoServerAnswers) {
  for (const auto& [timeout, pause] :
       {std::pair{600ms, 250ms}, {12'000ms, 2000ms}, {60'000ms, 5000ms}}) {
    SCOPED_TRACE(timeout.count());
    settings_.endpoints = {{"localhost", 2181}};
    settings_.timeout = timeout;
    library_.made.clear();
    make();
    open(10min);
    ASSERT_EQ(library_.made.size(), 1U);
    EXPECT_THAT(client().options.addresses, testing::EndsWith(":2181"));
    time_.run_for(pause - 1ns);
    EXPECT_THAT(client().taken(), IsEmpty());
    time_.run_for(1ns);
    const auto ask = "set_addresses " + client().options.addresses;
    EXPECT_THAT(client().taken(), ElementsAre(ask));
    time_.run_for(pause);
    EXPECT_THAT(client().taken(), ElementsAre(ask));
    client().connect();
    time_.run_for(pause);
    EXPECT_THAT(client().taken(), testing::Not(testing::Contains(ask)));
    client().disconnect();
    client().taken();
    time_.run_for(0s);
    EXPECT_THAT(client().taken(), ElementsAre(ask)) << "at once after a loss";
    close();
    EXPECT_EQ(env_.timers(), 0U);
  }
}

}  // namespace
}  // namespace dlock::zookeeper

// SPDX-License-Identifier: Apache-2.0
//
// The small decisions: metadata, session timeouts, errors, options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/lock/token_offset.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "backends/zookeeper/rules/permits.hpp"
#include "backends/zookeeper/rules/session_timeout.hpp"
#include "backends/zookeeper/rules/words.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/zookeeper.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Metadata, ComesBackAsWritten) {
  const Metadata written{{"id-1", "host\nname=x", 4711, "100% app"}, 2500ms};
  const auto data = write_metadata(written);
  EXPECT_EQ(data,
            "dlock=1\nid=id-1\nhost=host%0Aname=x\npid=4711\napp=100%25 app\n"
            "session_timeout_ms=2500\n");
  const auto read = read_metadata(data);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->owner.id, "id-1");
  EXPECT_EQ(read->owner.host, "host\nname=x");
  EXPECT_EQ(read->owner.pid, 4711);
  EXPECT_EQ(read->owner.app, "100% app");
  EXPECT_EQ(read->session_timeout, 2500ms);
}

TEST(Metadata, SaysWhoAsksAndKeepsWhatStoodThere) {
  Metadata written;
  written.owner.id = "x";
  written.owner.app = "billing";
  written.revocable = true;
  EXPECT_FALSE(read_asking(write_metadata(written)));
  written.asked = Revocation{"an operator\non web1", std::chrono::milliseconds(1500)};
  const auto data = write_metadata(written);
  const auto read = read_metadata(data);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->revocable);
  EXPECT_EQ(read->owner.app, "billing");
  const auto asked = read_asking(data);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->who, written.asked->who);
  EXPECT_EQ(asked->within, written.asked->within);
  written.asked->within.reset();
  EXPECT_FALSE(read_asking(write_metadata(written))->within);
}

TEST(Metadata, CuratorsWordAsksToo) {
  const auto asked = read_asking(kRevoke);
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->who.empty());
  EXPECT_FALSE(asked->within);
  EXPECT_FALSE(read_asking("__REVOKE__ "));
  EXPECT_FALSE(read_asking("192.168.0.7"));
  EXPECT_EQ(read_asking("dlock=1\nasked_within_ms=-5\n")->within, std::chrono::milliseconds(0));
}

TEST(Metadata, OtherClientsDataIsNotOurs) {
  EXPECT_FALSE(read_metadata("").has_value());
  EXPECT_FALSE(read_metadata("192.168.0.7").has_value());
  EXPECT_FALSE(read_metadata("__REVOKE__").has_value());
  EXPECT_TRUE(read_metadata("dlock=1\nid=x").has_value());
}

TEST(PermitsLimit, ANewerFormatIsRefusedAndTheWrittenOneIsNot) {
  EXPECT_EQ(newer_limit("/x", write_limit(5)), "");
  EXPECT_THAT(newer_limit("/x", "v=2 5"), HasSubstr("/x"));
}

TEST(Metadata, AReaderThatWasAWriterIsAsOldAsThat) {
  Metadata stepped_down;
  stepped_down.born = 40;
  EXPECT_EQ(born_of(stepped_down, 90), 40);
  EXPECT_EQ(born_of(stepped_down, 30), 30) << "nobody's word makes a node younger";
  EXPECT_EQ(born_of(Metadata{}, 90), 90);
  EXPECT_EQ(born_of(std::nullopt, 90), 90) << "another client's node";
}

TEST(SessionTimeout, AsAskedIsFine) {
  EXPECT_EQ(timeout_error({3000ms, 3000ms}, AskedTimeout{2000ms, 2000ms}), "");
  EXPECT_EQ(timeout_error({3000ms, 3000ms}, std::nullopt), "");
}

TEST(SessionTimeout, RaisedByTheServerIsTwoTicks) {
  // A tick of 2 s: 4 s at least, and 6 s are needed.
  EXPECT_THAT(timeout_error({1000ms, 4000ms}, std::nullopt), HasSubstr("session_timeout=6000ms"));
  EXPECT_THAT(timeout_error({1000ms, 1001ms}, std::nullopt), HasSubstr("session_timeout=1502ms"));
}

TEST(SessionTimeout, TwoTicksExactlyAreFeltBelow) {
  EXPECT_EQ(probe_timeout(4000ms), 2666ms);
  EXPECT_THAT(timeout_error({4000ms, 4000ms}, AskedTimeout{2666ms, 4000ms}),
              HasSubstr("session_timeout=6000ms"));
  // Three ticks exactly: the probe's 4 s are the server's minimum, and granted.
  EXPECT_EQ(timeout_error({6000ms, 6000ms}, AskedTimeout{probe_timeout(6000ms), 4000ms}), "");
}

TEST(SessionTimeout, ClippedFromAboveNamesWhatToWrite) {
  EXPECT_THAT(timeout_error({60'000ms, 40'000ms}, std::nullopt),
              HasSubstr("write session_timeout=40000ms"));
}

TEST(Errors, MapToThePortableOnes) {
  EXPECT_EQ(failure_of(ZCONNECTIONLOSS, "x").error, errc::unavailable);
  EXPECT_EQ(failure_of(ZOPERATIONTIMEOUT, "x").error, errc::unavailable);
  EXPECT_EQ(failure_of(ZNOAUTH, "x").error, errc::access_denied);
  EXPECT_EQ(failure_of(ZAUTHFAILED, "x").error, errc::access_denied);
  EXPECT_EQ(failure_of(-4711, "x").error, errc::protocol);
  EXPECT_FALSE(failure_of(ZOK, "x").error);
  EXPECT_EQ(make_error_code(Error::session_timeout), errc::config_invalid);
  EXPECT_EQ(make_error_code(Error::no_chroot), errc::config_invalid);
  EXPECT_EQ(make_error_code(Error::held_with_other_token), errc::not_holder);
  EXPECT_EQ(make_error_code(Error::not_held), errc::not_found);
  EXPECT_STREQ(make_error_code(Error::closed).category().name(), "dlock.zookeeper");
}

TEST(Errors, LossesAreWhatTheServerDidNotSay) {
  for (const int rc : {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZSESSIONEXPIRED, ZCLOSING, ZINVALIDSTATE,
                       ZRUNTIMEINCONSISTENCY}) {
    EXPECT_TRUE(is_loss(rc)) << rc;
  }
  for (const int rc : {ZOK, ZNONODE, ZNODEEXISTS, ZNOAUTH, ZBADVERSION}) {
    EXPECT_FALSE(is_loss(rc)) << rc;
  }
}

TEST(FourLetter, FindsAValue) {
  const std::string text =
      "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on x\nMode: "
      "leader\n";
  EXPECT_EQ(line_value(text, "Zookeeper version"),
            "3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f");
  EXPECT_EQ(line_value(text, "Mode"), "leader");
  EXPECT_EQ(line_value(text, "Latency"), "");
}

StoreOptions options_with(std::string path, std::string chroot, std::string acl,
                          std::string username) {
  StoreOptions options;
  options.name = "zk";
  options.scheme = "zookeeper";
  options.endpoints = {{"127.0.0.1", 2181}};
  options.path = std::move(path);
  options.username = std::move(username);
  options.text["acl"] = std::move(acl);
  options.text["chroot"] = chroot;
  if (!chroot.empty()) options.origin["chroot"] = {"dlock.yaml", 3};
  options.origin["acl"] = {"dlock.yaml", 4};
  return options;
}

std::string refusal(const StoreOptions& options) {
  try {
    check_options(options);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return {};
}

TEST(Options, WhatTheSpecsCannotExpress) {
  EXPECT_EQ(refusal(options_with("/app", "", "open", "")), "");
  EXPECT_EQ(refusal(options_with("/app", "/team", "creator", "me")), "");
  EXPECT_THAT(refusal(options_with("/a//b", "", "open", "")), HasSubstr("/a//b"));
  EXPECT_THAT(refusal(options_with("/zookeeper", "", "open", "")), HasSubstr("server's own"));
  EXPECT_THAT(refusal(options_with("/a", "team", "open", "")), HasSubstr("start with /"));
  EXPECT_THAT(refusal(options_with("/a", "", "creator", "")), HasSubstr("dlock.yaml"));
  auto nobody = options_with("/a", "", "open", "");
  nobody.endpoints.clear();
  EXPECT_THAT(refusal(nobody), HasSubstr("zookeeper://"));
}

TEST(Options, DescribeTheBackend) {
  EXPECT_EQ(backend().name, "zookeeper");
  EXPECT_EQ(backend().lease_option, "session_timeout");
  ASSERT_EQ(backend().refused_schemes.size(), 2U);
  EXPECT_EQ(backend().refused_schemes[0].first, "zk+tls");
  EXPECT_THAT(std::string(backend().refused_schemes[0].second), HasSubstr("TLS"));
}

TEST(ZooKeeperOffset, ComesBackOldestFirst) {
  using Offsets = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_offsets(""), (Offsets{0}));
  EXPECT_EQ(parse_offsets("v=1 7 19"), (Offsets{0, 7, 19}));
  EXPECT_EQ(write_offsets({0, 7, 19}), "v=1 7 19");
  for (const auto* text : {"x", "7", "v=1 7 ", "v=1  7", "v=1 7  8", "v=1 8 7", "v=1 7 7", "v=1 0",
                           "v=1 -1", "v=1 9007199254740992", "v=12", "v=2 7"}) {
    EXPECT_FALSE(parse_offsets(text)) << text;
  }
  EXPECT_EQ(newer_offsets("/%offset", "v=1 7"), "");
  EXPECT_EQ(newer_offsets("/%offset", "v=2 7"),
            "/%offset has format 2; this program reads format 1; upgrade it");
  Offsets many{0};
  for (std::uint64_t i = 1; i <= 100; ++i) many.push_back(i);
  const auto kept = parse_offsets(write_offsets(many)).value();
  EXPECT_EQ(kept.back(), 100U);
  EXPECT_EQ(kept.size(), 65U) << "the last 64, and none";
}

}  // namespace
}  // namespace dlock::zookeeper

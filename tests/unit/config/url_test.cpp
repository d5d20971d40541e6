// SPDX-License-Identifier: Apache-2.0
#include "core/config/url.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

std::string shown(const ParsedUrl& url) {
  std::string text = url.scheme;
  if (url.username) text += " user=" + *url.username;
  if (url.password) text += " password=" + *url.password;
  for (const auto& host : url.hosts) {
    text.append(" ").append(host.name);
    if (host.port) text.append("|").append(std::to_string(*host.port));
  }
  text.append(" path=").append(url.path);
  for (const auto& [key, value] : url.query) {
    text.append(" ").append(key).append("=").append(value);
  }
  return text;
}

TEST(Url, TakesThePartsApart) {
  const std::pair<const char*, const char*> table[] = {
      {"zookeeper://zk1,zk2:2182,[::1]:2183/app?session_timeout=10s&retry.policy=forever",
       "zookeeper zk1 zk2|2182 ::1|2183 path=/app session_timeout=10s retry.policy=forever"},
      {"ZK://h", "zk h path="},
      {"zookeeper://h/", "zookeeper h path=/"},
      {"zookeeper://app:s3%40cr%2Ft@h:1/a%20b",
       "zookeeper user=app password=s3@cr/t h|1 path=/a b"},
      {"redis://app@h", "redis user=app h path="},
      {"redis://:secret@h/0", "redis user= password=secret h path=/0"},
      {"file:///var/lib/app/locks", "file path=/var/lib/app/locks"},
      {"memory://test", "memory test path="},
      {"x://h:65535?a=b%26c", "x h|65535 path= a=b&c"},
      {"x://h:?a=", "x h path= a="},
      {"zk+tls://10.0.0.1", "zk+tls 10.0.0.1 path="},
  };
  for (const auto& [text, parts] : table) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text << ": " << url.error;
    EXPECT_EQ(shown(*url.value), parts) << text;
  }
}

TEST(Url, RefusesTheRestWithARemedy) {
  const std::pair<const char*, const char*> table[] = {
      {"", "write for example zookeeper://"},
      {"/var/lock", "did you mean file:///var/lock?"},
      {"file:/var/lock", "did you mean file:///var/lock?"},
      {"./locks", "file:// and an absolute path"},
      {"localhost:6379", "did you mean redis://localhost:6379?"},
      {"h:2181/app", "did you mean zookeeper://h:2181/app?"},
      {"h:11211", "did you mean memcached://h:11211?"},
      {"/x:secret@h", "write for example zookeeper://"},
      {"zookeeper:h", "write for example zookeeper://"},
      {"://h", "write for example"},
      {"zk://a,,b", "empty"},
      {"zk://a,", "ends with a comma"},
      {"zk://a:70000", "1 to 65535"},
      {"zk://a:0", "1 to 65535"},
      {"zk://a:port", "not a host"},
      {"zk://::1", "in brackets"},
      {"zk://fe80::1:2181", "in brackets"},
      {"zk://a b", "not a host"},
      {"zk://a/b c", "percent-escape"},
      {"zk://a/b#c", "write it as %23"},
      {"zk://a?flag", "'flag' in its query has no value"},
      {"z k://a", "it is not a URL"},
      {"zk://:2181", "has no host"},
  };
  for (const auto& [text, complaint] : table) {
    const auto url = parse_url(text);
    EXPECT_FALSE(url) << text;
    EXPECT_NE(url.error.find(complaint), std::string::npos) << text << ": " << url.error;
  }
}

TEST(Url, NeverShowsAPassword) {
  EXPECT_EQ(redacted_url("redis://app:secret@h:1/0?x=1"), "redis://app:***@h:1/0?x=1");
  EXPECT_EQ(redacted_url("redis://:secret@h"), "redis://:***@h");
  EXPECT_EQ(redacted_url("redis://app:sec@ret@h/0"), "redis://app:***@h/0")
      << "not one that parses";
  EXPECT_EQ(redacted_url("redis://h?secret=x&a=b"), "redis://h?secret=***&a=b");
  EXPECT_EQ(redacted_url("redis://app@h"), "redis://app@h");
  EXPECT_EQ(redacted_url("redis://h?sentinel_password=x&a=b"),
            "redis://h?sentinel_password=***&a=b");
  EXPECT_EQ(redacted_url("file:///a"), "file:///a");
  EXPECT_EQ(redacted_url("file:locks"), "file:locks") << "no store of files has a password";
  EXPECT_EQ(redacted_url("redis:secret"), "redis:***");
  for (const char* url : {"redis://:sec/ret@h", "redis://app:sec?ret@h", "redis://app:sec#ret@h",
                          "redis://app:secret@h:port", "app:secret@h", "redis://app:se ret@h",
                          "redis://12:34/secret@h", "redis://a:ret@,@h"}) {
    EXPECT_EQ(redacted_url(url).find("ret"), std::string::npos) << redacted_url(url);
    EXPECT_EQ(parse_url(url).error.find("ret"), std::string::npos) << parse_url(url).error;
    EXPECT_EQ(parse_url(url).error.find("sec"), std::string::npos) << parse_url(url).error;
  }
}

TEST(Url, APasswordInTheWrongPlaceIsNotShownEither) {
  for (const char* url :
       {"redis://app:hunter2", "redis://:hunter2", "redis://:hunter2/0",
        "redis://app:hunter2@h:99999", "redis://app:hunter2@x@h", "redis://u:12?hunter2@h",
        "redis://u:12?hunter2=x@h", "redis://[::1]u:hunter2@h", "redis:/u:hunter2@h",
        "redis//u:hunter2@h", "u:hunter2@h", "redis://u:hunter2%zz@h"}) {
    EXPECT_FALSE(parse_url(url)) << url;
    EXPECT_EQ(parse_url(url).error.find("hunter2"), std::string::npos) << parse_url(url).error;
    EXPECT_EQ(redacted_url(url).find("hunter2"), std::string::npos) << redacted_url(url);
  }
}

TEST(Url, LosesOneParameter) {
  EXPECT_EQ(without_parameter("zk://h?a=1&b=2&a=3", "a"), "zk://h?b=2");
  EXPECT_EQ(without_parameter("zk://h?a=1", "a"), "zk://h");
  EXPECT_EQ(without_parameter("zk://h?ab=1", "a"), "zk://h?ab=1");
  EXPECT_EQ(without_parameter("zk://h", "a"), "zk://h");
}

}  // namespace
}  // namespace dlock::core

// SPDX-License-Identifier: Apache-2.0
#include "core/config/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/config/retry.hpp"
#include "dlock/error.hpp"
#include "dlock/options.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using Kind = OptionSpec::Kind;

BackendDescriptor keeper() {
  BackendDescriptor backend{};
  backend.name = "keeper";
  backend.schemes = {"keeper", "kp"};
  backend.default_port = 2181;
  backend.options = {
      {"session_timeout", Kind::duration, "10s", 1'000, 600'000},
      {"format", Kind::choice, "curator", 0, INT64_MAX, "curator|kazoo"},
      {"connections", Kind::integer, "1", 1, 64},
      {"readonly", Kind::boolean, "false"},
      {"prefix", Kind::text},
      {"token", Kind::secret},
  };
  backend.lease_option = "session_timeout";
  backend.refused_schemes = {{"keeper+tls", "the client library has no TLS"}};
  return backend;
}

BackendDescriptor cache() {
  BackendDescriptor backend{};
  backend.name = "cache";
  backend.schemes = {"cache"};
  backend.default_port = 6379;
  backend.options = {{"lease", Kind::duration, "30s", 100, 3'600'000}};
  backend.lease_option = "lease";
  return backend;
}

BackendDescriptor folder() {
  BackendDescriptor backend{};
  backend.name = "folder";
  backend.schemes = {"folder"};
  backend.address = BackendDescriptor::Address::path;
  return backend;
}

const BackendDescriptor kKeeper = keeper();
const BackendDescriptor kCache = cache();
const BackendDescriptor kFolder = folder();

StoreConfig store(std::string url, std::vector<std::pair<std::string, std::string>> settings = {}) {
  StoreConfig config;
  config.name = "zk";
  config.url = std::move(url);
  config.origin = {"dlock.yaml", 2, 3};
  int line = 3;
  for (auto& [key, value] : settings) {
    config.settings.push_back({key, value, {"dlock.yaml", line++, 5}});
  }
  return config;
}

ResolvedStore resolve(const StoreConfig& config) {
  const BackendDescriptor* const all[] = {&kKeeper, &kCache, &kFolder};
  return resolve_store(config, all);
}

std::string complaint(const StoreConfig& config) {
  try {
    resolve(config);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return "(none)";
}

TEST(Options, FillsEndpointsAndDefaults) {
  const auto resolved = resolve(store("kp://app:pw@zk1,zk2:2182,[::1]:2183/root"));
  EXPECT_EQ(resolved.backend, &kKeeper);
  const StoreOptions& options = resolved.options;
  EXPECT_EQ(options.name, "zk");
  EXPECT_EQ(options.scheme, "kp");
  ASSERT_EQ(options.endpoints.size(), 3U);
  EXPECT_EQ(options.endpoints[0].host, "zk1");
  EXPECT_EQ(options.endpoints[0].port, 2181);
  EXPECT_EQ(options.endpoints[2].host, "::1");
  EXPECT_EQ(options.endpoints[2].port, 2183);
  EXPECT_EQ(options.path, "/root");
  EXPECT_EQ(options.username, "app");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.app, program_name());
  EXPECT_EQ(options.duration("session_timeout"), 10s);
  EXPECT_EQ(options.string("format"), "curator");
  EXPECT_EQ(options.integer("connections"), 1);
  EXPECT_FALSE(options.flag("readonly"));
  EXPECT_EQ(options.string("prefix"), "");
  EXPECT_FALSE(options.given("session_timeout"));
  EXPECT_THROW((void)options.duration("prefix"), std::logic_error);
}

TEST(Options, MergesUrlAndSettings) {
  const auto resolved =
      resolve(store("keeper://h?session_timeout=8s&readonly=yes&retry=forever",
                    {{"format", "kazoo"}, {"connect_timeout", "3s"}, {"app", "billing"}}));
  EXPECT_EQ(resolved.options.duration("session_timeout"), 8s);
  EXPECT_TRUE(resolved.options.flag("readonly"));
  EXPECT_EQ(resolved.options.string("format"), "kazoo");
  EXPECT_EQ(resolved.options.app, "billing");
  EXPECT_EQ(resolved.options.origin.at("format").line, 3);
  EXPECT_TRUE(resolved.options.given("session_timeout"));
  EXPECT_EQ(resolved.settings.connect_timeout, 3s);
  EXPECT_EQ(resolved.settings.retry.kind, RetryPolicy::Kind::forever);
}

TEST(Options, ReadsTheCoresOwnSettings) {
  const auto settings = resolve(store("cache://h", {{"wait", "5s"},
                                                    {"lease", "40s"},
                                                    {"request_timeout", "700ms"},
                                                    {"release_timeout", "0"},
                                                    {"drift_margin", "50ms"},
                                                    {"require", "exclusive,fair"}}))
                            .settings;
  EXPECT_EQ(settings.wait, 5s);
  EXPECT_EQ(settings.lease, 40s);
  EXPECT_EQ(settings.request_timeout, 700ms);
  EXPECT_EQ(settings.release_timeout, 0s);
  EXPECT_EQ(settings.drift_margin, 50ms);
  EXPECT_EQ(settings.require, (std::vector<std::string>{"exclusive", "fair"}));

  const auto defaults = resolve(store("cache://h")).settings;
  EXPECT_FALSE(defaults.wait || defaults.lease || defaults.request_timeout ||
               defaults.drift_margin);
  EXPECT_EQ(resolve(store("cache://h?wait=forever")).settings.wait, kWaitForever);
}

std::string refusal(const StoreConfig& config) {
  try {
    resolve(config);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return "accepted";
}

TEST(Options, ADriftMarginThatEatsTheLeaseIsRefusedWithWhatToWrite) {
  for (const char* margin : {"30s", "1m"}) {
    const auto text = refusal(store("cache://h", {{"drift_margin", margin}}));
    EXPECT_NE(text.find("nothing of the lease of 30s; write less"), std::string::npos) << text;
  }
  EXPECT_NE(refusal(store("cache://h?lease=1s&drift_margin=1s")), "accepted");
  EXPECT_NE(refusal(store("keeper://h", {{"drift_margin", "10s"}})), "accepted");
  EXPECT_NE(refusal(store("cache://h", {{"drift_margin", "-1ms"}})), "accepted");
  EXPECT_EQ(refusal(store("cache://h", {{"drift_margin", "29s"}})), "accepted");
  EXPECT_EQ(refusal(store("folder:///a", {{"drift_margin", "1h"}})), "accepted") << "no lease";
}

// The table in docs/configuration.md is made of core_options(): what it says must be what happens.
TEST(Options, DefaultsAreThoseOfTheTable) {
  const StoreSettings defaults;
  for (const OptionSpec& spec : core_options()) {
    if (spec.name == "connect_timeout") {
      EXPECT_EQ(spec.default_value, "15s");
      EXPECT_EQ(defaults.connect_timeout, 15s);
    } else if (spec.name == "release_timeout") {
      EXPECT_EQ(spec.default_value, "5s");
      EXPECT_EQ(defaults.release_timeout, 5s);
    } else if (spec.name == "cohort") {
      EXPECT_EQ(spec.default_value, "0");
      EXPECT_EQ(defaults.cohort, 0U);
    } else {
      EXPECT_EQ(spec.default_value, "") << spec.name;
    }
  }
}

TEST(Options, ComplaintsSayWhereWhatAndWhatInstead) {
  const struct {
    StoreConfig config;
    const char* text;
  } table[] = {
      {store("keeper://h", {{"session_timout", "10s"}}),
       "dlock.yaml:3:5: store 'zk': session_timout: unknown key of a keeper store; did you mean "
       "'session_timeout'?"},
      {store("keeper://h", {{"session-timeout", "10s"}}), "did you mean 'session_timeout'?"},
      {store("keeper://h", {{"zzz", "1"}}), "known: session_timeout, format, "},
      {store("keeper://h", {{"password", "hunter2"}}),
       "password: not a key of a keeper store; write auth: { password_env: VARIABLE }, or auth: { "
       "password_file: PATH }"},
      {store("keeper://h", {{"session_timeout", "10"}}),
       "session_timeout: '10': it has no unit; write 10s or 10ms"},
      {store("keeper://h", {{"session_timeout", "5ms"}}), "'5ms' is too small; write 1s or more"},
      {store("keeper://h", {{"session_timeout", "17d"}}), "'17d' is too large; write 10m or less"},
      {store("keeper://h", {{"format", "kazo"}}),
       "format: 'kazo' is not one of its values; did you mean 'kazoo'?"},
      {store("keeper://h", {{"connections", "many"}}), "'many' is not a whole number"},
      {store("keeper://h", {{"connections", "65"}}), "'65' is too large; write 64 or less"},
      {store("keeper://h", {{"connections", "99999999999999999999"}}), "is too large"},
      {store("keeper://h", {{"readonly", "maybe"}}), "write true or false"},
      {store("keeper://h", {{"connect_timeout", "0s"}}), "'0s' is too small; write 100ms or more"},
      {store("keeper://h?format=kazoo", {{"format", "kazoo"}}),
       "dlock.yaml:3:5: store 'zk': format: written twice (also at dlock.yaml:2:3); keep one"},
      {store("keeper://h?format=kazoo&format=curator"), "format: written twice"},
      {store("keeper://h", {{"lease", "10s"}}), "write session_timeout: 10s instead"},
      {store("folder:///a", {{"lease", "10s"}}), "has no lease"},
      {store("folder:///a", {{"lock_delay", "10s"}}),
       "dlock.yaml:3:5: store 'zk': lock_delay: a folder store cannot delay: it has no lease: the "
       "kernel frees"},
      {store("keeper://h", {{"lock_delay", "10s"}}), "frees all that a session held"},
      {store("cache://h?lock_delay=10s"), "does not promise to keep anything"},
      {store("cache://h", {{"cache", "5s"}}),
       "dlock.yaml:3:5: store 'zk': cache: a cache store tells nobody that somebody else asks"},
      {store("cache://h", {{"cohort", "1001"}}), "cohort: '1001' is too large"},
      {store("cache://h", {{"lease", "1ms"}}), "'1ms' is too small; write 100ms or more"},
      {store("keeper://h", {{"require", "exclusiv"}}), "did you mean 'exclusive'?"},
      {store("keeper://h", {{"app", ""}}), "app: it is empty"},
      {store("keeper://h", {{"auth.password", "x"}}), "write password_env: VARIABLE"},
      {store("keeper://h?auth.password=x"), "write password_env: VARIABLE"},
      {store("keeper://h", {{"auth.user", "x"}}), "did you mean 'auth.username'?"},
      {store("keeper://a:b@h", {{"auth.username", "x"}}), "keep one"},
      {store("keeper://h", {{"token", "abc"}}), "write token_env: VARIABLE or token_file: PATH"},
      {store("kepper://h"), "did you mean keeper://?"},
      {store("postgres://h"),
       "no backend of this program serves postgres://; it has: keeper, kp, cache, folder"},
      {store("keeper+tls://h"), "keeper+tls:// is refused: the client library has no TLS"},
      {store("keeper:///root"), "names no host"},
      {store("folder://locks/app"),
       "write three slashes and an absolute path: folder:///locks/app"},
      {store("folder:///"), "names no folder"},
      {store("nonsense"), "dlock.yaml:2:3: store 'zk': url: 'nonsense': it is not a URL"},
  };
  for (const auto& [config, text] : table) {
    EXPECT_NE(complaint(config).find(text), std::string::npos)
        << "wanted: " << text << "\n   got: " << complaint(config);
  }
}

TEST(Options, ComplaintsKeepSecrets) {
  for (const char* url : {"keeper://app:hunter2@h?zzz=1", "keeper://app:hunter2@h:port",
                          "nowhere://app:hunter2@h", "keeper://app:hunter2@/x"}) {
    EXPECT_EQ(complaint(store(url)).find("hunter2"), std::string::npos) << complaint(store(url));
  }
}

TEST(Options, SecretsComeFromTheEnvironmentOrAFile) {
  ::setenv("DLOCK_TEST_PASSWORD", "from env", 1);  // NOLINT(concurrency-mt-unsafe)
  const auto file =
      std::filesystem::temp_directory_path() / ("dlock-options-test-" + std::to_string(::getpid()));
  std::ofstream(file) << "from file\nmore\n";

  auto options = resolve(store("keeper://h", {{"auth.username", "app"},
                                              {"auth.password_env", "DLOCK_TEST_PASSWORD"},
                                              {"token_file", file.string()}}))
                     .options;
  EXPECT_EQ(options.username, "app");
  EXPECT_EQ(options.password, "from env");
  EXPECT_EQ(options.string("token"), "from file");
  EXPECT_EQ(options.password_file, "");
  options = resolve(store("keeper://h?auth.password_file=" + file.string())).options;
  EXPECT_EQ(options.password, "from file");
  EXPECT_EQ(options.password_file, file.string());

  EXPECT_NE(complaint(store("keeper://h", {{"auth.password_env", "DLOCK_TEST_NO_SUCH"}}))
                .find("environment variable DLOCK_TEST_NO_SUCH is not set"),
            std::string::npos);
  EXPECT_NE(complaint(store("keeper://h", {{"auth.password_file", "/no/such/file"}}))
                .find("/no/such/file cannot be read: No such file"),
            std::string::npos);
  EXPECT_NE(complaint(store("keeper://a:b@h", {{"auth.password_env", "DLOCK_TEST_PASSWORD"}}))
                .find("keep one"),
            std::string::npos);
  std::filesystem::remove(file);
  ::unsetenv("DLOCK_TEST_PASSWORD");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Options, AUrlMayComeFromTheEnvironment) {
  const char* const kVariable = "DLOCK_TEST_URL_OF_A_STORE";
  auto config = store("", {{"url_env", kVariable}, {"wait", "5s"}});
  ::unsetenv(kVariable);
  EXPECT_THROW(resolve(config), MissingReference);
  EXPECT_EQ(complaint(config),
            "dlock.yaml:3:5: store 'zk': url_env: the environment variable "
            "DLOCK_TEST_URL_OF_A_STORE is not set; set it to a URL, for example redis://host");
  EXPECT_FALSE(config.has("lease"));
  ::setenv(kVariable, "cache://u:hunter2@h:99999", 1);
  EXPECT_EQ(
      complaint(config),
      "dlock.yaml:2:3: store 'zk': url: 'cache://u:***@h:99999': the port of 'h:99999' is not "
      "within 1 to 65535");
  ::setenv(kVariable, "cache://u:hunter2@h/1?lease=9s", 1);
  const auto resolved = resolve(config);
  EXPECT_EQ(resolved.options.password, "hunter2");
  EXPECT_EQ(resolved.settings.wait, 5s);
  EXPECT_TRUE(config.has("lease"));
  EXPECT_TRUE(config.has("wait"));
  EXPECT_EQ(config.place(), "cache://h/1?lease=9s");
  config.set({"lease", "7s", {"--lease", 0, 0}});
  EXPECT_EQ(resolve(config).settings.lease, 7s);
  ::unsetenv(kVariable);
}

TEST(Options, ASecretThatIsMissingIsAMatterOfItsStore) {
  const auto config =
      store("keeper://h", {{"auth.username", "u"}, {"auth.password_env", "DLOCK_TEST_NOT_SET"}});
  try {
    resolve(config);
    FAIL() << "resolved";
  } catch (const MissingReference& missing) {
    const auto stand_in = unusable_store(config, missing);
    EXPECT_EQ(stand_in.options.name, "zk");
    EXPECT_TRUE(stand_in.options.password.empty());
  }
}

TEST(Options, BestEffortMayBeAccepted) {
  EXPECT_FALSE(resolve(store("cache://h")).settings.accepts_best_effort);
  EXPECT_TRUE(resolve(store("cache://h?accept=best_effort")).settings.accepts_best_effort);
  EXPECT_NE(complaint(store("cache://h", {{"accept", "best-effort"}})).find("did you mean"),
            std::string::npos);
  EXPECT_NE(complaint(store("cache://h?accept=best_effort&require=exclusive")).find("keep one"),
            std::string::npos);
}

TEST(Options, OverridesWhateverWasWritten) {
  auto config = store("keeper://h?session_timeout=8s&format=kazoo", {{"session_timeout", "9s"}});
  config.set({"session_timeout", "20s", {"--lease", 0, 0}});
  const auto options = resolve(config).options;
  EXPECT_EQ(options.duration("session_timeout"), 20s);
  EXPECT_EQ(options.string("format"), "kazoo");
}

TEST(Options, SuggestsOnlyWhatIsNear) {
  const std::string_view words[] = {"session_timeout", "format"};
  EXPECT_EQ(nearest_word("sesion_timeout", words), "session_timeout");
  EXPECT_EQ(nearest_word("sessionTimeout", words), "session_timeout");
  EXPECT_EQ(nearest_word("fromat", words), "format");
  EXPECT_EQ(nearest_word("colour", words), "");
  EXPECT_EQ(nearest_word("x", words), "");
}

RetryPolicy retry(std::vector<std::pair<std::string, std::string>> settings) {
  return resolve(store("keeper://h", std::move(settings))).settings.retry;
}

TEST(Retry, ReadsSixPoliciesByCuratorsNames) {
  using RetryKind = RetryPolicy::Kind;
  const std::pair<const char*, RetryKind> table[] = {
      {"forever", RetryKind::forever},
      {"RetryForever", RetryKind::forever},
      {"retry_forever", RetryKind::forever},
      {"retry-forever", RetryKind::forever},
      {"n-times", RetryKind::n_times},
      {"RetryNTimes", RetryKind::n_times},
      {"retry-n-times", RetryKind::n_times},
      {"one-time", RetryKind::one_time},
      {"RetryOneTime", RetryKind::one_time},
      {"until-elapsed", RetryKind::until_elapsed},
      {"RetryUntilElapsed", RetryKind::until_elapsed},
      {"exponential", RetryKind::exponential},
      {"ExponentialBackoffRetry", RetryKind::exponential},
      {"exponential-backoff-retry", RetryKind::exponential},
      {"bounded-exponential", RetryKind::bounded_exponential},
      {"BoundedExponentialBackoffRetry", RetryKind::bounded_exponential},
      {"bounded_exponential_backoff_retry", RetryKind::bounded_exponential},
  };
  for (const auto& [name, kind] : table) EXPECT_EQ(retry_kind(name), kind) << name;
  EXPECT_EQ(retry_kind("never"), std::nullopt);
  EXPECT_EQ(retry_kind(""), std::nullopt);
}

TEST(Retry, ReadsParameters) {
  const auto defaults = retry({});
  EXPECT_EQ(defaults.kind, RetryPolicy::Kind::exponential);
  EXPECT_EQ(defaults.base, 100ms);
  EXPECT_EQ(defaults.max, 3s);
  EXPECT_FALSE(defaults.times || defaults.elapsed);

  const auto exponential = retry({{"retry.policy", "exponential"},
                                  {"retry.base", "200ms"},
                                  {"retry.max", "5s"},
                                  {"retry.times", "7"}});
  EXPECT_EQ(exponential.base, 200ms);
  EXPECT_EQ(exponential.max, 5s);
  EXPECT_EQ(exponential.times, 7);

  const auto n = retry({{"retry.times", "3"}, {"retry", "n-times"}, {"retry.interval", "1s"}});
  EXPECT_EQ(n.kind, RetryPolicy::Kind::n_times);
  EXPECT_EQ(n.times, 3);
  EXPECT_EQ(n.base, 1s);

  EXPECT_EQ(retry({{"retry.policy", "until-elapsed"}, {"retry.elapsed", "1m"}}).elapsed, 1min);
}

TEST(Retry, ComplainsWithARemedy) {
  const struct {
    std::vector<std::pair<std::string, std::string>> settings;
    const char* text;
  } table[] = {
      {{{"retry", "exponentiel"}}, "did you mean 'exponential'?"},
      {{{"retry.policy", "n-times"}}, "the policy 'n-times' needs 'times'"},
      {{{"retry", "until-elapsed"}}, "the policy 'until-elapsed' needs 'elapsed'"},
      {{{"retry", "forever"}, {"retry.times", "3"}},
       "'forever' has no such parameter; it takes: interval"},
      {{{"retry.intervall", "3s"}}, "did you mean 'interval'?"},
      {{{"retry.interval", "3s"}}, "'exponential' has no such parameter"},
      {{{"retry.base", "100"}}, "it has no unit"},
      {{{"retry.base", "0s"}}, "write 1ms or more"},
      {{{"retry.times", "-1"}}, "write 0 or more"},
      {{{"retry.base", "5s"}}, "max 3s is below base 5s"},
      {{{"retry", "forever"}, {"retry.policy", "forever"}}, "named twice"},
  };
  for (const auto& [settings, text] : table) {
    EXPECT_NE(complaint(store("keeper://h", settings)).find(text), std::string::npos)
        << "wanted: " << text << "\n   got: " << complaint(store("keeper://h", settings));
  }
}

}  // namespace
}  // namespace dlock::core

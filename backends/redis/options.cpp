// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/options.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <charconv>
#include <filesystem>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/names.hpp"
#include "dlock/redis.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::redis {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::int64_t kLongestLease_ms = 30LL * 24 * 3'600'000;
constexpr std::int64_t kLongestDelay_ms = 3'600'000;
constexpr std::string_view kUnixScheme = "redis+unix";
constexpr std::string_view kTlsScheme = "rediss";
constexpr std::string_view kLater =
    "Sentinel, Cluster and quorums of masters are not built yet; name one server by redis://host";

OptionSpec text_option(std::string_view name, std::string_view default_value,
                       std::string_view help) {
  return {.name = name,
          .kind = Kind::text,
          .default_value = default_value,
          .choices = {},
          .help = help};
}

OptionSpec duration_option(std::string_view name, std::string_view default_value, std::int64_t min,
                           std::int64_t max, std::string_view help) {
  return {.name = name,
          .kind = Kind::duration,
          .default_value = default_value,
          .min = min,
          .max = max,
          .choices = {},
          .help = help};
}

int database(const StoreOptions& options) {
  if (options.scheme == kUnixScheme || options.path.size() <= 1) {
    return static_cast<int>(options.integer("db"));
  }
  const auto text = std::string_view(options.path).substr(1);
  int number = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0) {
    refuse_option(options, {},
                  fmt::format("the URL's path '{}' is not a database number; write for example /0",
                              options.path));
  }
  if (options.given("db") && options.integer("db") != number) {
    refuse_option(options, "db", "db: the URL's path names another database; keep one of them");
  }
  return number;
}

/// The path of a file that is read again with each connection: absolute, since the program may
/// change its working directory.
std::string file(const StoreOptions& options, std::string_view option) {
  const auto& path = options.string(option);
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

void check_tls(const StoreOptions& options) {
  if (options.scheme == kTlsScheme) {
    if (options.given("tls_cert") != options.given("tls_key")) {
      refuse_option(options, options.given("tls_cert") ? "tls_cert" : "tls_key",
                    "tls_cert and tls_key belong together: the certificate and its private key");
    }
    return;
  }
  for (const std::string_view name :
       {"tls_ca", "tls_cert", "tls_key", "tls_verify", "tls_server_name"}) {
    if (options.given(name)) {
      refuse_option(options, name, fmt::format("{}: only with TLS; write rediss://", name));
    }
  }
}

std::unique_ptr<Backend> create(const StoreOptions& options, Env& env, EventSink& sink) {
  // Else it may be gone at exit before a store of static storage has closed its TLS connections.
  ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return std::make_unique<RedisBackend>(options, dial_settings(options), env, sink);
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs;
  specs.push_back(duration_option("lease", "30s", 100, kLongestLease_ms,
                                  "how long a dead holder keeps the lock; renewed each third"));
  specs.push_back(duration_option("lock_delay", "0", 0, kLongestDelay_ms,
                                  "how long after a loss no client is granted the lock"));
  specs.push_back({.name = "fair",
                   .kind = Kind::boolean,
                   .default_value = "false",
                   .choices = {},
                   .help = "true: waiters acquire in order of arrival; set it in all clients"});
  specs.push_back(cache_option());
  specs.push_back(max_queue_option());
  specs.push_back(duration_option("poll", "1s", 10, 60'000,
                                  "how often the first waiters look although nobody woke them"));
  specs.push_back(text_option(
      "key", kOwnTemplate,
      "a lock's key; {name} stands for the lock's name; another client's template makes "
      "its locks and ours exclude each other"));
  specs.push_back({.name = "db",
                   .kind = Kind::integer,
                   .default_value = "0",
                   .min = 0,
                   .max = 1'000'000,
                   .choices = {},
                   .help = "the database's number; also the URL's path, redis://host/3"});
  specs.push_back(
      {.name = "durability",
       .kind = Kind::choice,
       .default_value = "inspect",
       .choices = "inspect|appendfsync-always",
       .help = "where CONFIG GET is forbidden: the operator declares the fsync policy"});
  specs.push_back(text_option("tls_ca", "",
                              "file of the authorities to trust; default the "
                              "system's"));
  specs.push_back(text_option("tls_cert", "", "file of our certificate chain"));
  specs.push_back(text_option("tls_key", "", "file of our private key"));
  specs.push_back({.name = "tls_verify",
                   .kind = Kind::boolean,
                   .default_value = "true",
                   .choices = {},
                   .help = "false: believe any certificate (tests only)"});
  specs.push_back(text_option("tls_server_name", "",
                              "the name in the server's certificate; default the URL's host"));
  return specs;
}

DialSettings dial_settings(const StoreOptions& options) {
  if (const auto error = template_error(options.string("key")); !error.empty()) {
    refuse_option(options, "key", fmt::format("key '{}': {}", options.string("key"), error));
  }
  if (options.flag("fair") && options.string("key") != kOwnTemplate) {
    refuse_option(
        options, "fair",
        "fair: other clients of the template in `key` do not queue; leave out one of the two");
  }
  DialSettings settings;
  if (options.scheme == kUnixScheme) {
    if (options.path.size() > 107)
      refuse_option(options, {}, "the socket's path has over 107 bytes");
    settings.socket_path = options.path;
  } else {
    if (options.endpoints.size() != 1) refuse_option(options, {}, std::string(kLater));
    settings.host = options.endpoints.front().host;
    settings.port = options.endpoints.front().port;
  }
  check_tls(options);
  settings.tls = options.scheme == kTlsScheme;
  settings.tls_ca = file(options, "tls_ca");
  settings.tls_cert = file(options, "tls_cert");
  settings.tls_key = file(options, "tls_key");
  settings.tls_verify = options.flag("tls_verify");
  settings.tls_server_name = options.string("tls_server_name");
  if (settings.tls_server_name.empty()) settings.tls_server_name = settings.host;
  if (!options.username.empty() && options.password.empty()) {
    // Not shown: it may well be a password.
    refuse_option(
        options, {},
        "a user name without a password; write user:password@, or :password@ for a password "
        "alone, or auth.password_env");
  }
  settings.username = options.username;
  if (!options.password.empty()) {
    settings.password = std::make_shared<Password>(options.password, options.password_file);
  }
  settings.database = database(options);
  return settings;
}

const BackendDescriptor& backend() {
  // Never destroyed: stores of static storage point to it.
  static const auto& descriptor = *new BackendDescriptor{
      .name = "redis",
      .schemes = {"redis", "rediss", kUnixScheme},
      .address = BackendDescriptor::Address::hosts,
      .default_port = 6379,
      .options = option_specs(),
      .lease_option = "lease",
      .refused_schemes = {{"redis+sentinel", kLater},
                          {"redis+cluster", kLater},
                          {"redis+quorum", kLater},
                          {"redis+tls", "write rediss://"},
                          {"unix", "write redis+unix:///path/to/redis.sock"}},
      .create = &create,
      .path_schemes = {kUnixScheme},
      .has_shared_mode = true,
      .has_permits = true,
      .has_adoption = true,
  };
  return descriptor;
}

}  // namespace dlock::redis

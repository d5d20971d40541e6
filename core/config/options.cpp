// SPDX-License-Identifier: Apache-2.0
#include "core/config/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/config/fail.hpp"
#include "core/config/requirements.hpp"
#include "core/config/retry.hpp"
#include "core/config/secret.hpp"
#include "core/config/url.hpp"
#include "core/config/written.hpp"
#include "dlock/duration.hpp"
#include "dlock/options.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

using Kind = OptionSpec::Kind;
using std::chrono::milliseconds;

constexpr std::int64_t kHour_ms = 3'600'000;
constexpr std::int64_t kMonth_ms = 30LL * 24 * kHour_ms;

constexpr std::string_view kLeaseOption = "lease";
constexpr std::string_view kLockDelayOption = "lock_delay";
constexpr std::string_view kCacheOption = "cache";
constexpr std::string_view kMaxHoldOption = "max_hold";
constexpr std::string_view kMaxQueueOption = "max_queue";

// `wait` and `lease` have no default here: a store without them leaves the choice to the caller.
constexpr std::array<OptionSpec, 11> kCoreOptions{{
    {"wait", Kind::duration, "", 0, kMonth_ms, "",
     "how long an acquire waits when it does not say; `forever` is allowed"},
    {"lease", Kind::duration, "", 1, kMonth_ms, "",
     "how long a dead holder keeps the lock; only on a store whose lease is per lock"},
    {"connect_timeout", Kind::duration, "15s", 100, kHour_ms, "",
     "`unavailable` once the store has been out of reach this long on end"},
    {"request_timeout", Kind::duration, "", 10, kHour_ms, "",
     "the longest that one request may take; default a third of the lease, 1s to 5s"},
    {"release_timeout", Kind::duration, "5s", 0, kHour_ms, "",
     "how long a release, and the end of the program, wait to be confirmed"},
    {"drift_margin", Kind::duration, "", 0, kHour_ms, "",
     "taken off every lease; default 1 % of it, at least 20ms"},
    {"require", Kind::text, "", 0, INT64_MAX, "",
     "refuse the store if it cannot promise it: exclusive, fair, token, shared, semaphore; a word "
     "or a list"},
    {"cohort", Kind::integer, "0", 0, 1000, "",
     "how often in a row a lock is handed on inside this process while another client waits"},
    {"accept", Kind::choice, "", 0, INT64_MAX, "best_effort",
     "what the store does not promise is known: no warning of it"},
    {"app", Kind::text, "", 0, INT64_MAX, "",
     "what we call ourselves in the owner's data; default the program's name"},
    {kMaxHoldOption, Kind::duration, "", 1, kMonth_ms, "",
     "how long a lock may be held at most; then it is lost and given back"},
}};

constexpr std::array<std::string_view, 3> kAuthKeys{"auth.username", "auth.password_env",
                                                    "auth.password_file"};
/// Keys that are written for a login instead of the keys of `auth`.
constexpr std::array<std::string_view, 6> kLoginKeys{"auth",     "user",         "username",
                                                     "password", "password_env", "password_file"};

const OptionSpec* find_spec(std::span<const OptionSpec> specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const OptionSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// One store under way from configuration to options.
class Resolver {
 public:
  Resolver(const StoreConfig& store, const BackendDescriptor& backend, ParsedUrl url)
      : store_(store), backend_(backend), url_(std::move(url)) {}

  ResolvedStore run() {
    result_.backend = &backend_;
    result_.options.name = store_.name;
    result_.options.scheme = url_.scheme;
    address();
    defaults();
    for (const Setting& setting : merged()) apply(setting);
    check_accepted();
    retry();
    check_drift_margin();
    if (result_.options.app.empty()) result_.options.app = program_name();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const Origin& origin, const std::string& text) const {
    fail_config(origin, store_.name, text);
  }

  BackendDescriptor::Address address_kind() const {
    const auto& paths = backend_.path_schemes;
    const bool path = std::find(paths.begin(), paths.end(), url_.scheme) != paths.end();
    return path ? BackendDescriptor::Address::path : backend_.address;
  }

  void address() {
    StoreOptions& options = result_.options;
    options.path = url_.path;
    options.username = url_.username.value_or("");
    options.password = url_.password.value_or("");
    switch (address_kind()) {
      case BackendDescriptor::Address::hosts:
        if (url_.hosts.empty()) {
          fail(store_.origin, fmt::format("url: '{0}' names no host; write {1}://host1,host2{2}",
                                          redacted_url(store_.url), url_.scheme, url_.path));
        }
        for (const auto& host : url_.hosts) {
          const auto port = host.port.value_or(backend_.default_port);
          if (port == 0) {
            fail(store_.origin, fmt::format("url: '{0}' has no port; write {0}:PORT", host.name));
          }
          options.endpoints.push_back({host.name, port});
        }
        break;
      case BackendDescriptor::Address::path:
        // `file://locks/app` would mean the host `locks`: surely not what was meant.
        if (!url_.hosts.empty() && !(url_.hosts.size() == 1 && url_.hosts[0].name == "localhost")) {
          fail(store_.origin,
               fmt::format("url: '{0}' names a host, but this store is a folder; write three "
                           "slashes and an absolute path: {1}:///{2}{3}",
                           redacted_url(store_.url), url_.scheme, url_.hosts[0].name, url_.path));
        }
        if (url_.path.size() < 2) {
          fail(store_.origin, fmt::format("url: '{0}' names no folder; write for example "
                                          "{1}:///var/lib/app/locks",
                                          redacted_url(store_.url), url_.scheme));
        }
        break;
      case BackendDescriptor::Address::name:
        if (url_.hosts.size() != 1 || url_.path.size() > 1) {
          fail(store_.origin, fmt::format("url: '{0}' names no store; write for example {1}://test",
                                          redacted_url(store_.url), url_.scheme));
        }
        options.endpoints.push_back({url_.hosts[0].name, 0});
        break;
    }
  }

  void defaults() {
    for (const OptionSpec& spec : backend_.options) {
      if (spec.default_value.empty()) continue;
      const auto error = apply_option(spec, spec.default_value, result_.options);
      if (!error.empty()) {
        fail({}, fmt::format("backend {}: the default of {} is wrong: {}", backend_.name, spec.name,
                             error));
      }
    }
  }

  /// The URL's query and the settings beside it as one list.
  const std::vector<Setting>& merged() {
    for (const auto& [key, value] : url_.query) add({key, value, store_.origin});
    for (const Setting& setting : store_.settings) add(setting);
    return all_;
  }

  void add(Setting setting) {
    for (const Setting& other : all_) {
      if (other.key == setting.key) {
        fail(setting.origin,
             fmt::format("{0}: written twice (also {1}); keep one of them", setting.key,
                         other.origin.text() == setting.origin.text()
                             ? std::string("there, in the URL's query")
                             : "at " + other.origin.text()));
      }
    }
    all_.push_back(std::move(setting));
  }

  void apply(const Setting& setting) {
    if (setting.key == "retry" || starts_with(setting.key, "retry.")) return;  // all at once
    if (starts_with(setting.key, "auth.")) return auth(setting);
    if (setting.key == kLeaseOption) check_lease_is_a_setting(setting);
    if (const auto* spec = find_spec(backend_.options, setting.key)) {
      apply_to_backend(*spec, setting);
      // A lease per lock belongs to both: the backend's limits, the core's default.
      if (setting.key == kLeaseOption) {
        result_.settings.lease = result_.options.duration(kLeaseOption);
      }
      if (setting.key == kCacheOption) {
        result_.settings.cache = result_.options.duration(kCacheOption);
      }
      if (setting.key == kMaxQueueOption) {
        result_.settings.max_queue =
            static_cast<std::uint32_t>(result_.options.integer(kMaxQueueOption));
      }
      return;
    }
    if (apply_secret_reference(setting)) return;
    if (const auto* spec = find_spec(kCoreOptions, setting.key))
      return apply_to_core(*spec, setting);
    if (setting.key == kLockDelayOption) refuse_lock_delay(setting);
    if (setting.key == kCacheOption) refuse_cache(setting);
    if (setting.key == kMaxQueueOption) refuse_max_queue(setting);
    unknown(setting);
  }

  void apply_to_backend(const OptionSpec& spec, const Setting& setting) {
    // A URL is one line that comes from somewhere safe or does not; a file is committed.
    if (spec.kind == Kind::secret && setting.origin.line != 0) {
      fail(setting.origin, fmt::format("{0}: a secret does not belong into a configuration file; "
                                       "write {0}_env: VARIABLE or {0}_file: PATH",
                                       setting.key));
    }
    const auto error = apply_option(spec, setting.value, result_.options);
    if (!error.empty()) fail(setting.origin, fmt::format("{}: {}", setting.key, error));
    result_.options.origin[setting.key] = setting.origin;
    if (!setting.starter_key.empty())
      result_.options.starter_key[setting.key] = setting.starter_key;
  }

  /// `password_env` and `password_file` beside an option `password` of kind secret.
  bool apply_secret_reference(const Setting& setting) {
    for (const std::string_view suffix : {"_env", "_file"}) {
      const std::string_view key = setting.key;
      if (key.size() <= suffix.size() || key.substr(key.size() - suffix.size()) != suffix) continue;
      const std::string option(key.substr(0, key.size() - suffix.size()));
      const auto* spec = find_spec(backend_.options, option);
      if (spec == nullptr || spec->kind != Kind::secret) continue;
      result_.options.text[option] = secret(setting, suffix == "_env");
      result_.options.origin[option] = setting.origin;
      return true;
    }
    return false;
  }

  std::string secret(const Setting& setting, bool from_environment) const {
    const auto value =
        from_environment ? secret_from_environment(setting.value) : secret_from_file(setting.value);
    if (!value) {
      throw MissingReference(config_message(setting.origin, store_.name,
                                            fmt::format("{}: {}", setting.key, value.error)));
    }
    return *value.value;
  }

  /// Returns the default lease of the locks of this store; empty: it has none.
  std::optional<milliseconds> usual_lease() const {
    if (result_.settings.lease) return result_.settings.lease;
    const auto& numbers = result_.options.number;
    const auto found = numbers.find(backend_.lease_option);
    if (backend_.lease_option.empty() || found == numbers.end()) return std::nullopt;
    return milliseconds(found->second);
  }

  // A margin that eats the lease: the lock would be lost the moment it is granted.
  void check_drift_margin() {
    const auto margin = result_.settings.drift_margin;
    const auto lease = usual_lease();
    if (!margin || !lease || *margin < *lease) return;
    const auto written = std::find_if(all_.begin(), all_.end(), [](const Setting& setting) {
      return setting.key == "drift_margin";
    });
    fail(written->origin,
         fmt::format("drift_margin: {} leaves nothing of the lease of {}; write less than that, or "
                     "leave it out (1 % of the lease, at least 20ms)",
                     format_duration(*margin), format_duration(*lease)));
  }

  void auth(const Setting& setting) {
    if (setting.key == "auth.username") {
      if (!result_.options.username.empty()) {
        fail(setting.origin, "auth.username: the URL names a user, too; keep one of them");
      }
      result_.options.username = setting.value;
      return;
    }
    if (setting.key == "auth.password_env" || setting.key == "auth.password_file") {
      if (!result_.options.password.empty()) {
        fail(setting.origin, fmt::format("{}: there is another password (in the URL, or by another "
                                         "key); keep one of them",
                                         setting.key));
      }
      const bool from_environment = setting.key == "auth.password_env";
      result_.options.password = secret(setting, from_environment);
      // The program may change its working directory before the file is read again.
      if (!from_environment) {
        result_.options.password_file = std::filesystem::absolute(setting.value).string();
      }
      return;
    }
    if (setting.key == "auth.password") {
      fail(setting.origin,
           "auth.password: a secret does not belong into the configuration; write password_env: "
           "VARIABLE or password_file: PATH instead");
    }
    fail(setting.origin,
         fmt::format("{}: unknown key; {}", setting.key, suggestion(setting.key, kAuthKeys)));
  }

  void check_lease_is_a_setting(const Setting& setting) const {
    if (backend_.lease_option == kLeaseOption) return;
    if (backend_.lease_option.empty()) {
      fail(setting.origin, fmt::format("lease: a {} store has no lease: the kernel frees a dead "
                                       "holder's lock at once; remove it",
                                       backend_.name));
    }
    fail(setting.origin, fmt::format("lease: on a {0} store the session is the lease; write {1}: "
                                     "{2} instead",
                                     backend_.name, backend_.lease_option, setting.value));
  }

  /// An option of some stores. The message says why this store lacks it.
  [[noreturn]] void refuse_lock_delay(const Setting& setting) const {
    std::string why;
    if (backend_.lease_option.empty()) {
      why =
          "it has no lease: the kernel frees a lock when its holder is gone, and a holder that is "
          "alive loses none";
    } else if (backend_.lease_option != kLeaseOption) {
      why =
          "its server frees all that a session held when the session ends, and keeps nothing "
          "longer";
    } else {
      why =
          "it does not promise to keep anything until a given time, so it cannot keep a lost lock "
          "from the others either";
    }
    fail(setting.origin, fmt::format("{}: a {} store cannot delay: {}; remove it. Fencing tokens "
                                     "refuse what is late (docs/fencing.md)",
                                     kLockDelayOption, backend_.name, why));
  }

  /// An option of the stores that notify a holder when another client asks.
  [[noreturn]] void refuse_cache(const Setting& setting) const {
    fail(setting.origin,
         fmt::format("{}: a {} store tells nobody that somebody else asks for a lock: whoever asks "
                     "would wait until the time is over; remove it",
                     kCacheOption, backend_.name));
  }

  /// An option of the stores that queue their waiters.
  [[noreturn]] void refuse_max_queue(const Setting& setting) const {
    fail(setting.origin,
         fmt::format("{}: a {} store has no queue: a waiter asks again and again, and is "
                     "not counted; remove it, and bound the wait instead (wait: 5s)",
                     kMaxQueueOption, backend_.name));
  }

  void apply_to_core(const OptionSpec& spec, const Setting& setting) {
    StoreSettings& settings = result_.settings;
    if (spec.name == "app") {
      if (setting.value.empty()) fail(setting.origin, "app: it is empty; write a name");
      result_.options.app = setting.value;
      return;
    }
    if (spec.name == "require") {
      auto words = parse_requirements(setting.value);
      if (!words) fail(setting.origin, fmt::format("require: {}", words.error));
      settings.require = std::move(*words.value);
      return;
    }
    if (spec.name == "wait" && setting.value == "forever") {
      settings.wait = kWaitForever;
      return;
    }
    StoreOptions scratch;
    const auto error = apply_option(spec, setting.value, scratch);
    if (!error.empty()) fail(setting.origin, fmt::format("{}: {}", setting.key, error));
    if (spec.name == "accept") {
      settings.accepts_best_effort = true;
      return;
    }
    if (spec.name == "cohort") {
      settings.cohort = static_cast<unsigned>(scratch.integer(spec.name));
      return;
    }
    const milliseconds value = scratch.duration(spec.name);
    if (spec.name == "wait") settings.wait = value;
    if (spec.name == "lease") settings.lease = value;
    if (spec.name == "connect_timeout") {
      settings.connect_timeout = value;
      settings.connect_timeout_given = true;
    }
    if (spec.name == "request_timeout") settings.request_timeout = value;
    if (spec.name == "release_timeout") settings.release_timeout = value;
    if (spec.name == "drift_margin") settings.drift_margin = value;
    if (spec.name == kMaxHoldOption) settings.max_hold = value;
  }

  void retry() {
    const Setting* culprit = nullptr;
    auto policy = parse_retry(all_, culprit);
    if (!policy) fail(culprit == nullptr ? store_.origin : culprit->origin, policy.error);
    result_.settings.retry = *policy.value;
  }

  void check_accepted() const {
    const auto& required = result_.settings.require;
    if (!result_.settings.accepts_best_effort ||
        std::find(required.begin(), required.end(), "exclusive") == required.end()) {
      return;
    }
    fail(store_.origin, "accept: best_effort, and require: exclusive: keep one of them");
  }

  /// The message never shows the value, which may be the secret.
  [[noreturn]] void refuse_login(const Setting& setting) const {
    const auto remedy =
        setting.origin.line == 0
            ? fmt::format("write {}://USER:PASSWORD@HOST", url_.scheme)
            : std::string(
                  "write auth: { password_env: VARIABLE }, or auth: { password_file: PATH }"
                  ", with username beside it if the server has users");
    fail(setting.origin,
         fmt::format("{}: not a key of a {} store; {}", setting.key, backend_.name, remedy));
  }

  [[noreturn]] void unknown(const Setting& setting) const {
    if (backend_.address == BackendDescriptor::Address::hosts &&
        std::find(kLoginKeys.begin(), kLoginKeys.end(), setting.key) != kLoginKeys.end()) {
      refuse_login(setting);
    }
    std::vector<std::string_view> known;
    for (const auto& spec : backend_.options) known.push_back(spec.name);
    for (const auto& spec : kCoreOptions) {
      if (spec.name == kLeaseOption && backend_.lease_option != kLeaseOption) continue;
      if (find_spec(backend_.options, spec.name) == nullptr) known.push_back(spec.name);
    }
    known.insert(known.end(), {"retry", "auth"});
    fail(setting.origin, fmt::format("{}: unknown key of a {} store; {}", setting.key,
                                     backend_.name, suggestion(setting.key, known)));
  }

  const StoreConfig& store_;
  const BackendDescriptor& backend_;
  const ParsedUrl url_;
  std::vector<Setting> all_;
  ResolvedStore result_;
};

const BackendDescriptor& backend_of(const StoreConfig& store, const std::string& scheme,
                                    std::span<const BackendDescriptor* const> backends) {
  std::vector<std::string_view> known;
  for (const BackendDescriptor* backend : backends) {
    for (const std::string_view served : backend->schemes) {
      if (served == scheme) return *backend;
      known.push_back(served);
    }
    for (const auto& [refused, reason] : backend->refused_schemes) {
      if (refused == scheme) {
        fail_config(store.origin, store.name,
                    fmt::format("url: {}:// is refused: {}", scheme, reason));
      }
    }
  }
  const std::string_view nearest = nearest_word(scheme, known);
  fail_config(
      store.origin, store.name,
      fmt::format("url: no backend of this program serves {}://; {}it has: {}. (A backend "
                  "can be left out of a build by -DDLOCK_BACKEND_...=OFF)",
                  scheme, nearest.empty() ? "" : fmt::format("did you mean {}://? ", nearest),
                  known.empty() ? std::string("none") : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

std::span<const OptionSpec> core_options() { return kCoreOptions; }

ResolvedStore resolve_store(const StoreConfig& written,
                            std::span<const BackendDescriptor* const> backends) {
  const StoreConfig store = with_url(written);
  ParsedUrl url = parse_store_url(store);
  const BackendDescriptor& backend = backend_of(store, url.scheme, backends);
  return Resolver(store, backend, std::move(url)).run();
}

}  // namespace dlock::core

namespace dlock::inline v0 {

OptionSpec cache_option() {
  OptionSpec option;
  option.name = core::kCacheOption;
  option.kind = OptionSpec::Kind::duration;
  option.default_value = "0";
  option.max = core::kHour_ms;
  option.help = "how long a released lock stays with this process unless somebody else asks";
  return option;
}

OptionSpec max_queue_option() {
  OptionSpec option;
  option.name = core::kMaxQueueOption;
  option.kind = OptionSpec::Kind::integer;
  option.max = 1'000'000;
  option.help = "an acquire fails at once if already so many wait for the lock";
  return option;
}

const BackendDescriptor& find_backend(const StoreConfig& store,
                                      std::span<const BackendDescriptor* const> backends) {
  const StoreConfig read = core::with_url(store);
  return core::backend_of(read, core::parse_store_url(read).scheme, backends);
}

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
//
// Config::from_*: the shape of a configuration. Which keys a store may have is not known here; that
// is checked against its backend when the manager is opened (options.hpp).
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>

#include "core/config/fail.hpp"
#include "core/config/requirements.hpp"
#include "core/config/routes.hpp"
#include "core/config/sections.hpp"
#include "core/config/url.hpp"
#include "core/config/yaml_document.hpp"
#include "core/config/yaml_node.hpp"
#include "core/config/zk_lock.hpp"
#include "core/spi/word.hpp"
#include "dlock/config.hpp"
#include "dlock/duration.hpp"
#include "dlock/options.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

using Entry = YamlFile::Entry;

constexpr std::array<std::string_view, 4> kTopKeys{"stores", "locks", "sections", "zk-lock"};
constexpr std::array<std::string_view, 8> kRouteKeys{"match", "store",   "migrate",  "wait",
                                                     "lease", "require", "max_hold", "max_queue"};
constexpr std::uint32_t kLongestQueue = 1'000'000;
constexpr std::array<std::string_view, 5> kMigrateKeys{"from", "to", "plan", "gate", "poll"};
constexpr std::chrono::milliseconds kShortestPoll{50};
constexpr std::chrono::milliseconds kLongestPoll{60'000};

/// Unlike other words, a name may be `.` or `..`.
bool is_store_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), is_word_letter);
}

/// Whether both are parts of one plan. Without a gate, the command checks the stores.
bool is_same_part(const MigrateConfig& one, const MigrateConfig& other) {
  if (one.gate.empty() && other.gate.empty()) return true;
  return one.gate == other.gate && one.from == other.from && one.to == other.to;
}

class Reader {
 public:
  explicit Reader(const std::string& file_name) : file_(file_name) {}

  Config read(const YAML::Node& root) {
    std::vector<std::string> foreign;
    const auto top = file_.entries(root, "the configuration");
    const bool seed =
        std::any_of(top.begin(), top.end(), [](const Entry& e) { return e.key == "zk-lock"; });
    const bool ours = std::any_of(top.begin(), top.end(), [](const Entry& e) {
      return e.key == "stores" || e.key == "locks";
    });
    for (const Entry& entry : top) {
      if (entry.key == "stores") stores(entry.value);
      if (entry.key == "zk-lock") read_zk_lock(file_, entry.value, config_);
    }
    for (const Entry& entry : top) {
      if (!ours && !seed && is_u2_lock(entry.key)) refuse_u2_lock(file_, entry);
      if (entry.key == "locks") {
        routes(entry.value);
      } else if (entry.key == "sections") {
        config_.sections = read_sections(file_, entry.value);
      } else if (entry.key != "stores" && entry.key != "zk-lock") {
        // An application.yml with the seed's block in it belongs to others, too.
        if (ours || !seed) file_.fail_unknown(entry, "", kTopKeys);
        foreign.push_back(entry.key);
      }
    }
    if (!foreign.empty()) {
      config_.warnings.push_back(fmt::format("{}: read 'zk-lock' only; not ours: {}", file_.name(),
                                             fmt::join(foreign, ", ")));
    }
    finish(root);
    return std::move(config_);
  }

 private:
  void stores(const YAML::Node& node) {
    for (const Entry& entry : file_.entries(node, "stores")) {
      if (!is_store_name(entry.key)) {
        file_.fail(entry.key_node, fmt::format("'{}' is not a name for a store; use letters, "
                                               "digits, '-', '_' and '.'",
                                               entry.key));
      }
      config_.stores.push_back(store(entry));
    }
  }

  StoreConfig store(const Entry& entry) const {
    StoreConfig store;
    store.name = entry.key;
    store.origin = file_.origin(entry.key_node);
    if (entry.value.IsScalar()) {  // zk: "zookeeper://..."
      store.url = entry.value.Scalar();
      return store;
    }
    std::string variable;
    for (const Entry& setting : file_.entries(entry.value, fmt::format("store '{}'", entry.key))) {
      if (setting.key == "url") {
        store.url = file_.scalar(setting.value, "url");
        store.origin = file_.origin(setting.key_node);
      } else if (setting.key == "url_env") {
        variable = file_.scalar(setting.value, "url_env");
        store.origin = file_.origin(setting.key_node);
        store.settings.push_back({"url_env", variable, store.origin});
      } else {
        file_.flatten(setting, "", store.settings);
      }
    }
    if (!store.url.empty() && !variable.empty()) {
      file_.fail(store.origin,
                 fmt::format("store '{}' has url and url_env; keep one of them", entry.key));
    }
    if (store.url.empty() && variable.empty()) {
      file_.fail(store.origin, fmt::format("store '{}' has no url; write for example "
                                           "url: \"zookeeper://host1,host2/root\", or url_env: "
                                           "VARIABLE",
                                           entry.key));
    }
    return store;
  }

  void routes(const YAML::Node& node) {
    if (!node.IsSequence()) {
      file_.fail(node, "locks: a list is expected here; write `- { match: \"**\", store: name }`");
    }
    for (const auto& item : node) config_.locks.push_back(route(item));
  }

  RouteConfig route(const YAML::Node& node) const {
    RouteConfig route;
    route.store.clear();
    route.origin = file_.origin(node);
    bool has_match = false;
    for (const Entry& entry : file_.entries(node, "locks")) {
      if (entry.key == "match") {
        has_match = true;
        route.match = file_.scalar(entry.value, "match");
        if (const auto error = pattern_error(route.match); !error.empty()) {
          file_.fail(entry.key_node, fmt::format("match: '{}': {}", route.match, error));
        }
      } else if (entry.key == "store") {
        route.store = file_.scalar(entry.value, "store");
        check_store(entry, route.store);
      } else if (entry.key == "migrate") {
        route.migrate = migration(entry);
      } else if (entry.key == "wait" && entry.value.IsScalar() &&
                 entry.value.Scalar() == "forever") {
        route.wait = kWaitForever;
      } else if (entry.key == "wait" || entry.key == "lease") {
        (entry.key == "wait" ? route.wait : route.lease) = duration(entry);
      } else if (entry.key == "max_hold") {
        route.max_hold = duration(entry);
      } else if (entry.key == "max_queue") {
        route.max_queue = count(entry);
      } else if (entry.key == "require") {
        auto words = parse_requirements(file_.scalar_or_list(entry.value, "require"));
        if (!words) file_.fail(entry.key_node, fmt::format("require: {}", words.error));
        route.require = std::move(*words.value);
      } else {
        file_.fail_unknown(entry, " of a route", kRouteKeys);
      }
    }
    if (!has_match) file_.fail(node, "locks: a route needs `match`; \"**\" matches every name");
    if (route.migrate) {
      if (!route.store.empty()) {
        file_.fail(node, fmt::format("locks: the route '{}' has `store` and `migrate`; write "
                                     "`migrate` instead of `store`",
                                     route.match));
      }
      route.store = route.migrate->from;
    }
    if (route.store.empty()) {
      if (config_.stores.size() != 1) {
        file_.fail(node, fmt::format("locks: the route '{}' needs `store`", route.match));
      }
      route.store = config_.stores.front().name;
    }
    return route;
  }

  MigrateConfig migration(const Entry& block) const {
    MigrateConfig migrate;
    bool has_poll = false;
    for (const Entry& entry : file_.entries(block.value, "migrate")) {
      if (entry.key == "from" || entry.key == "to") {
        auto& store = entry.key == "from" ? migrate.from : migrate.to;
        store = file_.scalar(entry.value, entry.key);
        check_store(entry, store);
      } else if (entry.key == "plan") {
        migrate.plan = file_.scalar(entry.value, "plan");
      } else if (entry.key == "gate") {
        migrate.gate = file_.scalar(entry.value, "gate");
        check_store(entry, migrate.gate);
      } else if (entry.key == "poll") {
        has_poll = true;
        migrate.poll = duration(entry);
        if (migrate.poll < kShortestPoll || migrate.poll > kLongestPoll) {
          file_.fail(entry.key_node,
                     fmt::format("poll: '{}': write 50ms to 60s", entry.value.Scalar()));
        }
      } else {
        file_.fail_unknown(entry, " of migrate", kMigrateKeys);
      }
    }
    check_migration(block, migrate);
    check_gate(block, migrate, has_poll);
    return migrate;
  }

  void check_gate(const Entry& block, const MigrateConfig& migrate, bool has_poll) const {
    if (!migrate.gate.empty() && migrate.gate == migrate.from) {
      file_.fail(
          block.key_node,
          fmt::format("migrate: gate: '{}' is the source; write `gate: {}`, or a third store "
                      "that forgets nothing, or leave it out",
                      migrate.gate, migrate.to));
    }
    if (!migrate.gate.empty() && !is_word(migrate.gate)) {
      file_.fail(block.key_node,
                 fmt::format("migrate: gate: '{}': give the store another name", migrate.gate));
    }
    if (!migrate.gate.empty() && has_poll) {
      file_.fail(block.key_node, "migrate: `poll` has no effect with `gate`; leave it out");
    }
    for (const auto& other : config_.locks) {
      if (!other.migrate || other.migrate->plan != migrate.plan) continue;
      if (is_same_part(*other.migrate, migrate)) continue;
      file_.fail(
          block.key_node,
          fmt::format(
              "migrate: plan '{}' has other stores, or another `gate`, in line {}; write the "
              "same in all its routes",
              migrate.plan, other.origin.line));
    }
  }

  void check_migration(const Entry& block, const MigrateConfig& migrate) const {
    for (const auto& [key, value] : {std::pair("from", migrate.from), std::pair("to", migrate.to),
                                     std::pair("plan", migrate.plan)}) {
      if (!value.empty() && is_word(value)) continue;
      if (!value.empty()) {
        file_.fail(block.key_node, fmt::format("migrate: {}: '{}': write letters, digits, '-', '_' "
                                               "and '.', 64 at most",
                                               key, value));
      }
      file_.fail(block.key_node,
                 fmt::format("migrate: `{}` is missing; write for example migrate: {{ from: zk, "
                             "to: redis, plan: billing-2026 }}",
                             key));
    }
    if (migrate.from == migrate.to) {
      file_.fail(block.key_node,
                 fmt::format("migrate: from and to are both '{}'; a lock moves from "
                             "one store to another",
                             migrate.from));
    }
  }

  std::chrono::milliseconds duration(const Entry& entry) const {
    const std::string text = file_.scalar(entry.value, entry.key);
    const auto duration = parse_duration(text);
    if (!duration) {
      file_.fail(entry.key_node, fmt::format("{}: '{}': {}", entry.key, text, duration.error));
    }
    if ((entry.key == "lease" || entry.key == "max_hold") && duration.value->count() == 0) {
      file_.fail(entry.key_node, fmt::format("{}: '{}': write 1ms or more", entry.key, text));
    }
    return *duration.value;
  }

  std::uint32_t count(const Entry& entry) const {
    const std::string text = file_.scalar(entry.value, entry.key);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || value > kLongestQueue) {
      file_.fail(entry.key_node, fmt::format("{}: '{}': write a number from 0 to {}", entry.key,
                                             text, kLongestQueue));
    }
    return value;
  }

  void check_store(const Entry& entry, const std::string& name) const {
    std::vector<std::string_view> known;
    for (const auto& store : config_.stores) {
      if (store.name == name) return;
      known.push_back(store.name);
    }
    file_.fail(entry.key_node, fmt::format("{}: there is no store '{}'; {}", entry.key, name,
                                           known.empty() ? std::string("`stores` is empty")
                                                         : suggestion(name, known)));
  }

  void finish(const YAML::Node& root) {
    if (config_.stores.empty()) {
      file_.fail(root,
                 "no store is configured; write for example "
                 "stores: { main: { url: \"file:///var/lib/app/locks\" } }");
    }
    if (config_.locks.empty()) {
      if (config_.stores.size() > 1) {
        file_.fail(root, fmt::format(
                             "several stores, but no `locks` that say which lock goes where; write "
                             "for example locks: [ {{ match: \"**\", store: {} }} ]",
                             config_.stores.front().name));
      }
      RouteConfig all;
      all.store = config_.stores.front().name;
      all.origin = config_.stores.front().origin;
      config_.locks.push_back(std::move(all));
    }
    for (std::size_t i = 0; i < config_.locks.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!pattern_covers(config_.locks[j].match, config_.locks[i].match)) continue;
        config_.warnings.push_back(config_message(
            config_.locks[i].origin, {},
            fmt::format("the route '{}' is never reached: '{}' in line {} matches first; move it "
                        "up or remove it",
                        config_.locks[i].match, config_.locks[j].match,
                        config_.locks[j].origin.line)));
        break;
      }
    }
  }

  const YamlFile file_;
  Config config_;
};

}  // namespace

Config config_from_url(std::string_view url, Origin origin) {
  StoreConfig store;
  store.url = url;
  store.origin = std::move(origin);
  if (const auto parsed = parse_url(url); !parsed) {
    fail_config(store.origin, {}, fmt::format("'{}': {}", redacted_url(url), parsed.error));
  }
  RouteConfig all;
  all.origin = store.origin;
  Config config;
  config.stores.push_back(std::move(store));
  config.locks.push_back(std::move(all));
  return config;
}

}  // namespace dlock::core

namespace dlock::inline v0 {

namespace {

constexpr std::size_t kLongestFile = std::size_t{1} << 20U;

}  // namespace

Config Config::from_url(std::string_view url, Origin origin) {
  return core::config_from_url(url, std::move(origin));
}

Config Config::from_yaml(std::string_view text, const std::string& file_name) {
  const YAML::Node document = core::load_document(std::string(text), file_name);
  if (document.IsNull())
    core::fail_config({file_name}, {}, "the file is empty; it needs `stores:`");
  try {
    return core::Reader(file_name).read(document);
  } catch (const YAML::Exception& error) {
    core::fail_config({file_name, error.mark.line + 1, error.mark.column + 1}, {}, error.msg);
  }
}

Config Config::from_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string text;
  std::array<char, 4096> chunk{};
  while (file && text.size() <= kLongestFile) {
    file.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > kLongestFile) {
    core::fail_config({path}, {},
                      "the file is longer than 1 MiB: it is not a configuration of dlock");
  }
  // A folder opens, and fails to be read.
  if (!file.eof() || file.bad()) {
    const int error = errno != 0 ? errno : EIO;
    core::fail_config(
        {path}, {},
        fmt::format("the file cannot be read: {}", std::generic_category().message(error)));
  }
  return from_yaml(text, path);
}

}  // namespace dlock::inline v0

// SPDX-License-Identifier: Apache-2.0
#include "core/config/zk_lock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "core/config/fail.hpp"
#include "core/config/retry.hpp"
#include "dlock/duration.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

using Entry = YamlFile::Entry;
using std::chrono::milliseconds;

// A server grants at most 20 of its ticks, by default 40 s. A longer session only blocks the others
// longer when a holder dies. A program that waits over a minute to connect hangs.
constexpr milliseconds kShortest{1'000};
constexpr milliseconds kLongestSession{40'000};
constexpr milliseconds kLongestConnect{60'000};

constexpr std::string_view kTypes =
    "the type of each lock stands in `sections:`, for example sections: { stock.view: { type: "
    "read, lock: stock } }; types: mutex, read, write, semaphore_mutex, multi";

/// Spring binds `connection-timeout`, `connection_timeout` and `connectionTimeout` alike.
std::string relaxed(std::string_view key) {
  std::string folded;
  for (const char c : key) {
    if (c == '-' || c == '_') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

/// Returns dlock's name of a parameter of the starter's retry blocks or of Curator's constructors.
std::string retry_parameter(std::string_view key) {
  std::string name = relaxed(key);
  if (name.size() > 2 && name.substr(name.size() - 2) == "ms") name.resize(name.size() - 2);
  if (name == "retryinterval" || name == "sleepbetweenretry" || name == "sleepmsbetweenretry" ||
      name == "sleepbetweenretries" || name == "sleepmsbetweenretries" || name == "interval") {
    return "interval";
  }
  if (name == "basesleeptime" || name == "base") return "base";
  if (name == "maxsleep" || name == "maxsleeptime" || name == "max") return "max";
  if (name == "maxretries" || name == "retrycount" || name == "n" || name == "times") {
    return "times";
  }
  if (name == "maxelapsedtime" || name == "elapsed") return "elapsed";
  return {};
}

// Suggestions for a key that is not read.
constexpr std::array<std::string_view, 5> kZkLockKeys{
    "address", "connection-timeout", "session-timeout", "retry-policy", "lock-type"};
constexpr std::array<std::string_view, 8> kZkLockRetryKeys{
    "retry-interval-ms",  "sleep-ms-between-retries",
    "base-sleep-time-ms", "max-sleep-time-ms",
    "max-sleep-ms",       "max-retries",
    "retry-count",        "max-elapsed-time-ms"};

std::string meant(std::string_view key, std::span<const std::string_view> known) {
  const auto near = nearest_word(key, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

class ZkLockReader {
 public:
  ZkLockReader(const YamlFile& file, Config& config) : file_(file), config_(config) {}

  void read(const YAML::Node& block) {
    StoreConfig store;
    store.name = "zk";
    store.origin = file_.origin(block);
    const auto entries = file_.entries(block, "zk-lock");
    for (const Entry& entry : entries) {
      const std::string key = relaxed(entry.key);
      if (key == "address") {
        store.url = "zookeeper://" + file_.scalar(entry.value, "address");
        store.origin = file_.origin(entry.key_node);
      } else if (key == "connectiontimeout") {
        timeout(entry, "connect_timeout", kLongestConnect, store);
      } else if (key == "sessiontimeout") {
        timeout(entry, "session_timeout", kLongestSession, store);
      } else if (key == "retrypolicy") {
        policy(entry, store);
      } else if (key == "locktype" || key == "type") {
        check_type(entry);
      } else if (!retry_kind(entry.key)) {
        warn(entry,
             fmt::format("{}: unknown, ignored{}", entry.key, meant(entry.key, kZkLockKeys)));
      }
    }
    if (store.url.empty()) {
      file_.fail(store.origin, "zk-lock has no address; write address: 127.0.0.1:2181");
    }
    parameters(entries, store);
    add(std::move(store));
  }

 private:
  void warn(const Entry& entry, const std::string& text) {
    config_.warnings.push_back(
        config_message(file_.origin(entry.key_node), {}, "zk-lock: " + text));
  }

  std::int64_t number(const Entry& entry) const {
    const std::string text = file_.scalar(entry.value, entry.key);
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) {
      file_.fail(entry.key_node, fmt::format("zk-lock: {}: '{}' is not a number of milliseconds; "
                                             "write for example 10000",
                                             entry.key, text));
    }
    return value;
  }

  void timeout(const Entry& entry, const char* option, milliseconds longest, StoreConfig& store) {
    const milliseconds written(number(entry));
    const milliseconds used = std::clamp(written, kShortest, longest);
    if (used != written) {
      warn(entry,
           fmt::format("{}: {} ms is too {}; used: {} ms ({})", entry.key, written.count(),
                       written > longest ? "long" : "short", used.count(), format_duration(used)));
    }
    store.settings.push_back(
        {option, format_duration(used), file_.origin(entry.key_node), "zk-lock: " + entry.key});
  }

  /// Locks here are the starter's MUTEX.
  void check_type(const Entry& entry) const {
    const std::string type = file_.scalar(entry.value, entry.key);
    if (relaxed(type) == "mutex") return;
    file_.fail(entry.key_node, fmt::format("zk-lock: {}: '{}': {}", entry.key, type, kTypes));
  }

  void policy(const Entry& entry, StoreConfig& store) {
    const std::string name = file_.scalar(entry.value, entry.key);
    kind_ = retry_kind(name);
    if (!kind_) {
      file_.fail(entry.key_node,
                 fmt::format("zk-lock: {}: '{}' is not a retry policy; write retry-forever, "
                             "retry-n-times, retry-one-time, retry-until-elapsed, "
                             "exponential-backoff-retry or bounded-exponential-backoff-retry",
                             entry.key, name));
    }
    store.settings.push_back(
        {"retry.policy", std::string(retry_name(*kind_)), file_.origin(entry.key_node)});
  }

  /// `retry_forever: { retry-interval-ms: 3000 }`: only the block of the chosen policy counts.
  void parameters(const std::vector<Entry>& entries, StoreConfig& store) {
    for (const Entry& entry : entries) {
      if (!kind_ || retry_kind(entry.key) != kind_ || relaxed(entry.key) == "retrypolicy") continue;
      for (const Entry& inner : file_.entries(entry.value, entry.key)) {
        const std::string parameter = retry_parameter(inner.key);
        if (parameter.empty() || !retry_takes(*kind_, parameter)) {
          warn(inner, fmt::format("{}: {}: unknown, ignored{}", entry.key, inner.key,
                                  meant(inner.key, kZkLockRetryKeys)));
          continue;
        }
        const std::int64_t value = number(inner);
        store.settings.push_back({"retry." + parameter,
                                  parameter == "times"
                                      ? std::to_string(value)
                                      : fmt::format("{}ms", std::max<std::int64_t>(value, 1)),
                                  file_.origin(inner.key_node)});
      }
    }
  }

  void add(StoreConfig store) {
    for (const auto& other : config_.stores) {
      if (other.name == store.name) {
        file_.fail(store.origin, "zk-lock makes a store 'zk', but `stores` has one, too; keep one");
      }
    }
    config_.stores.push_back(std::move(store));
  }

  const YamlFile& file_;
  Config& config_;
  std::optional<RetryPolicy::Kind> kind_;
};

}  // namespace

bool is_u2_lock(std::string_view key) { return relaxed(key) == "u2lock"; }

void refuse_u2_lock(const YamlFile& file, const YamlFile::Entry& entry) {
  file.fail(entry.key_node,
            fmt::format("{}: this block of the starter is not read; write its address as zk-lock: "
                        "{{ address: host:2181 }}; {}",
                        entry.key, kTypes));
}

void read_zk_lock(const YamlFile& file, const YAML::Node& block, Config& config) {
  ZkLockReader(file, config).read(block);
}

}  // namespace dlock::core

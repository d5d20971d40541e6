// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached/sim_server.hpp"

#include <algorithm>
#include <charconv>

namespace dlock::simulation::memcached {
namespace {

/// From here on an exptime is a date, long past.
constexpr std::time_t kFirstDate = 60 * 60 * 24 * 30 + 1;

/// For the trace: on one line, and without what differs from run to run.
std::string brief(const std::string& value) {
  auto text = value.substr(0, 47);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

SimServer::SimServer(World& world)
    : world_(world),
      phase_(world.between({}, seconds(1))),
      tells_numbers_(world.chance(0.5)),
      started_(second()) {}

std::int64_t SimServer::second() const noexcept {
  return 1'700'000'000 +
         std::chrono::duration_cast<seconds>(world_.now().time_since_epoch() + phase_).count();
}

void SimServer::store(const std::string& key, const std::string& value, std::time_t exptime) {
  std::int64_t dies = exptime == 0 ? 0 : second() + exptime;
  if (exptime >= kFirstDate || exptime < 0) dies = 1;
  items_[key] = {value, ++last_cas_, dies};
}

const SimServer::Item* SimServer::get(const std::string& key) {
  const auto found = items_.find(key);
  if (found == items_.end()) return nullptr;
  if (found->second.dies == 0 || found->second.dies > second()) return &found->second;
  items_.erase(found);
  return nullptr;
}

SimServer::Code SimServer::add(const std::string& key, const std::string& value,
                               std::time_t exptime) {
  const bool there = get(key) != nullptr;
  world_.trace("memcached: add {} {} -> {}", key, brief(value), there ? "NOT_STORED" : "STORED");
  if (there) return Code::not_stored;
  store(key, value, exptime);
  on_added(value);
  return Code::stored;
}

SimServer::Code SimServer::cas(const std::string& key, const std::string& value,
                               std::time_t exptime, std::uint64_t cas) {
  const auto* item = get(key);
  const bool same = item != nullptr && item->cas == cas;
  world_.trace("memcached: cas {} {} for {} s -> {}", key, brief(value), exptime,
               same              ? "STORED"
               : item == nullptr ? "NOT_FOUND"
                                 : "EXISTS");
  if (item == nullptr) return Code::not_found;
  if (!same) return Code::exists;
  if (exptime < 0 || exptime >= kFirstDate) on_removed(item->value);
  store(key, value, exptime);
  return Code::stored;
}

SimServer::Code SimServer::remove(const std::string& key, std::uint64_t cas) {
  const auto* item = get(key);
  const bool same = item != nullptr && item->cas == cas;
  world_.trace("memcached: delete {} if {} -> {}", key,
               item == nullptr ? "any" : brief(item->value),
               same              ? "DELETED"
               : item == nullptr ? "NOT_FOUND"
                                 : "EXISTS");
  if (item == nullptr) return Code::not_found;
  if (!same) return Code::exists;
  on_removed(item->value);
  items_.erase(key);
  return Code::stored;
}

SimServer::Code SimServer::increment(const std::string& key, std::uint64_t by,
                                     std::uint64_t& result) {
  if (get(key) == nullptr) return Code::not_found;
  auto& item = items_.at(key);
  const auto* end = item.value.data() + item.value.size();
  if (std::from_chars(item.value.data(), end, result).ptr != end) return Code::not_a_number;
  result += by;
  item.value = std::to_string(result);
  item.cas = ++last_cas_;
  return Code::stored;
}

SimServer::Code SimServer::seconds_left(const std::string& key, std::uint64_t& result) {
  const auto* item = get(key);
  if (item == nullptr) return Code::not_found;
  if (item->dies == 0) return Code::not_a_number;
  result = static_cast<std::uint64_t>(item->dies - second());
  return Code::stored;
}

std::map<std::string, std::string> SimServer::stats() const {
  return {{"version", "1.6.18"},
          {"pid", std::to_string(pid_)},
          {"time", std::to_string(second())},
          {"uptime", std::to_string(second() - started_)},
          {"cmd_flush", std::to_string(flushes_)},
          {"limit_maxbytes", "67108864"},
          {"evictions", std::to_string(evictions_)}};
}

std::map<std::string, std::string> SimServer::settings() const { return {{"evictions", "on"}}; }

void SimServer::kill() {
  up_ = false;
  items_.clear();
}

void SimServer::start() {
  if (up_) return;
  up_ = true;
  last_cas_ = 0;  // it numbers anew
  ++pid_;
  started_ = second();
  evictions_ = 0;
  flushes_ = 0;
}

void SimServer::flush() {
  items_.clear();
  ++flushes_;
}

bool SimServer::drop(const std::string& key) {
  if (get(key) == nullptr) return false;
  items_.erase(key);
  return true;
}

std::map<std::string, SimServer::Item> SimServer::live() {
  std::map<std::string, Item> all;
  for (const auto& [key, item] : items_) {
    if (item.dies == 0 || item.dies > second()) all.emplace(key, item);
  }
  return all;
}

}  // namespace dlock::simulation::memcached

// SPDX-License-Identifier: Apache-2.0
//
// A Memcached server as far as locks need one: add, cas, incr, gets and stats on items that expire
// by a clock of whole seconds. It forgets all when it restarts or is flushed, and single items when
// memory is short. No network here, and no dlock.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/world.hpp"

namespace dlock::simulation::memcached {

class SimServer {
 public:
  struct Item {
    std::string value;
    std::uint64_t cas = 0;
    std::int64_t dies = 0;  ///< by the server's seconds; 0: never
  };
  enum class Code { stored, not_stored, exists, not_found, not_a_number };

  explicit SimServer(World& world);

  Code add(const std::string& key, const std::string& value, std::time_t exptime);
  Code cas(const std::string& key, const std::string& value, std::time_t exptime,
           std::uint64_t cas);
  /// Deletes it, if its number is still that one.
  Code remove(const std::string& key, std::uint64_t cas);
  Code increment(const std::string& key, std::uint64_t by, std::uint64_t& result);
  /// The time until the item expires.
  Code seconds_left(const std::string& key, std::uint64_t& result);
  /// Null if it is not there.
  const Item* get(const std::string& key);
  std::map<std::string, std::string> stats() const;
  std::map<std::string, std::string> settings() const;

  /// Told of each add that was stored.
  std::function<void(const std::string& value)> on_added = [](const std::string&) {};
  /// Told of what a request made expire.
  std::function<void(const std::string& value)> on_removed = [](const std::string&) {};

  /// The number of what was stored last.
  std::uint64_t last_cas() const noexcept { return last_cas_; }
  /// Whether it says that number with a store: one that knows meta commands.
  bool tells_numbers() const noexcept { return tells_numbers_; }

  bool is_up() const noexcept { return up_; }
  void kill();
  void start();
  void flush();
  /// False if it is not there.
  bool drop(const std::string& key);
  void count_eviction() noexcept { ++evictions_; }
  /// What is there now.
  std::map<std::string, Item> live();
  /// Counts starts: what a connection to an earlier one carries is lost.
  std::uint64_t run() const noexcept { return pid_; }

 private:
  /// It ticks once a second, at a moment of its own.
  std::int64_t second() const noexcept;
  void store(const std::string& key, const std::string& value, std::time_t exptime);

  World& world_;
  const Duration phase_;
  const bool tells_numbers_;
  std::map<std::string, Item> items_;
  std::uint64_t last_cas_ = 0;
  std::uint64_t pid_ = 100;
  std::int64_t started_ = 0;
  std::uint64_t evictions_ = 0;
  std::uint64_t flushes_ = 0;
  bool up_ = true;
};

}  // namespace dlock::simulation::memcached

// SPDX-License-Identifier: Apache-2.0
//
// What the procedures (acquire, renew, release, look) ask of one server: single commands, one round
// trip each, in turn. Session is the real one; the unit tests have one that fails on demand.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/memcached/rules/server_info.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::memcached {

enum class Outcome {
  done,
  not_stored,   ///< of add: the key is there
  not_found,    ///< of cas, increment: the key is not there
  exists,       ///< of cas: another value is there by now
  refused,      ///< the server said no; nothing was changed
  unavailable,  ///< surely not done: not sent
  unknown,      ///< sent, and not answered: it may still happen
};

struct Answer {
  Outcome outcome = Outcome::unavailable;
  Failure failure;
  bool done() const noexcept { return outcome == Outcome::done; }
};

struct Number {
  Answer answer;
  std::uint64_t value = 0;
};

struct Item {
  std::string value;
  std::uint64_t cas = 0;
};

struct Found {
  Answer answer;
  std::map<std::string, Item, std::less<>> items;  ///< the keys that are there
  const Item* get(std::string_view key) const {
    const auto found = items.find(key);
    return found == items.end() ? nullptr : &found->second;
  }
};

class Commands {
 public:
  virtual ~Commands() = default;

  virtual TimePoint now() const = 0;
  virtual std::int64_t wall_clock_us() const = 0;
  /// When the caller gives up; commands after it are not sent.
  virtual TimePoint deadline() const = 0;

  virtual Answer add(const std::string& key, const std::string& value, std::time_t exptime) = 0;
  virtual Answer cas(const std::string& key, const std::string& value, std::time_t exptime,
                     std::uint64_t cas) = 0;
  virtual Number increment(const std::string& key, std::uint64_t by) = 0;
  /// One round trip for all keys. Reading twice does no harm: a broken connection is made anew.
  virtual Found gets(const std::vector<std::string>& keys) = 0;
  /// The same, and notices when the server has lost everything.
  virtual Found gets_and_canary(std::vector<std::string> keys) = 0;

  /// Asks how the server is; info() is new then, if it answered.
  virtual Answer refresh_facts() = 0;
  virtual const ServerInfo& info() const = 0;
};

}  // namespace dlock::memcached

// SPDX-License-Identifier: Apache-2.0
//
// The interface of a procedure (acquire, renew, release, status) to one server: commands, one round
// trip each, one after the other, while other procedures run. Call is the real one; the unit tests
// have one that fails on demand.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "backends/memcached/rules/server_info.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::memcached {

namespace asio = boost::asio;

enum class Outcome {
  done,
  not_stored,   ///< add: the key exists
  not_found,    ///< cas, remove, increment: the key does not exist
  exists,       ///< cas, remove: the key has another value now
  refused,      ///< the server refused; nothing was changed
  unavailable,  ///< not sent, so not executed
  unknown,      ///< sent, and not answered: it may still be executed
};

/// Identifies one of all values of a key: the server numbers the values that it stores. It is valid
/// within one era only: after a restart, or the loss of everything, the server counts again.
struct ItemNumber {
  std::uint64_t cas = 0;  ///< 0: not known
  std::uint64_t era = 0;
};

struct Answer {
  Outcome outcome = Outcome::unavailable;
  Failure failure;
  ItemNumber stored;  ///< number from add and cas, if the server returns it
  bool done() const noexcept { return outcome == Outcome::done; }
};

struct Number {
  Answer answer;
  std::uint64_t value = 0;
};

struct Item {
  std::string value;
  ItemNumber number;
};

/// A value that replaces the one with that number.
struct Replacement {
  std::string key;
  std::string value;
  std::time_t exptime = 0;
  ItemNumber number;
};

struct Found {
  Answer answer;
  std::map<std::string, Item, std::less<>> items;  ///< the keys that are there
  const Item* get(std::string_view key) const {
    const auto found = items.find(key);
    return found == items.end() ? nullptr : &found->second;
  }
};

/// The coroutines' references must live until they have ended.
class Commands {
 public:
  virtual ~Commands() = default;

  virtual TimePoint now() const = 0;
  virtual std::int64_t wall_clock_us() const = 0;
  /// When the caller gives up; commands after it are not sent.
  virtual TimePoint deadline() const = 0;

  virtual asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                                      std::time_t exptime) = 0;
  /// Stores it if the value there is still that one. `exists`: it is not, or the number says
  /// nothing any more.
  virtual asio::awaitable<Answer> cas(const std::string& key, const std::string& value,
                                      std::time_t exptime, const ItemNumber& number) = 0;
  /// All in one round trip; one answer each, in order.
  virtual asio::awaitable<std::vector<Answer>> cas_all(const std::vector<Replacement>& all) = 0;
  /// Deletes the key if its value is still that one. `exists`: it is not, or the number says
  /// nothing any more.
  virtual asio::awaitable<Answer> remove(const std::string& key, const ItemNumber& number) = 0;
  virtual asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) = 0;
  /// Returns the rest of the item's life. `refused`: the server does not say (it knows no meta
  /// commands, or the item never expires). Unless overridden: refused.
  virtual asio::awaitable<Number> seconds_left(const std::string& key);
  /// Reads all keys in one round trip. A repeated read is harmless, so a broken connection is
  /// opened again.
  virtual asio::awaitable<Found> gets(const std::vector<std::string>& keys) = 0;
  /// As gets(), and notices when the server has lost everything.
  virtual asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys) = 0;

  /// Returns whether the server has passed the self-test, or denies it. False without a ready
  /// connection. Checked before each `add` or `cas` that acquires a lock.
  virtual bool may_grant() const = 0;
  /// Connects if need be, and runs the self-test if the server has not passed it. `done`: locks may
  /// be granted. `refused`: the server is not safe.
  virtual asio::awaitable<Answer> pass_self_test() = 0;

  /// Asks how the server is; info() is new then, if it answered.
  virtual asio::awaitable<Answer> refresh_facts() = 0;
  virtual const ServerInfo& info() const = 0;
};

inline asio::awaitable<Number> Commands::seconds_left(const std::string& /*key*/) {
  Number unknown;
  unknown.answer.outcome = Outcome::refused;
  co_return unknown;
}

}  // namespace dlock::memcached

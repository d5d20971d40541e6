// SPDX-License-Identifier: Apache-2.0
//
// What a procedure (acquire, renew, release, look) asks of one server: commands, one round trip
// each, in turn, while others ask theirs. Call is the real one; the unit tests have one that fails
// on demand.
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
  not_stored,   ///< of add: the key is there
  not_found,    ///< of cas, remove, increment: the key is not there
  exists,       ///< of cas, remove: another value is there by now
  refused,      ///< the server said no; nothing was changed
  unavailable,  ///< surely not done: not sent
  unknown,      ///< sent, and not answered: it may still happen
};

/// Which of all values that a key ever had: the server numbers what it stores. It says something
/// within one era only: after a restart, or the loss of everything, the server counts anew.
struct ItemNumber {
  std::uint64_t cas = 0;  ///< 0: not known
  std::uint64_t era = 0;
};

struct Answer {
  Outcome outcome = Outcome::unavailable;
  Failure failure;
  ItemNumber stored;  ///< of add and cas, where the server says it
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

/// A value that is to take the place of the one with that number.
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
  /// How long the item lives on. `refused`: the server does not say (it knows no meta commands, or
  /// the item never expires). Unless overridden: refused.
  virtual asio::awaitable<Number> seconds_left(const std::string& key);
  /// One round trip for all keys. Reading twice does no harm: a broken connection is made anew.
  virtual asio::awaitable<Found> gets(const std::vector<std::string>& keys) = 0;
  /// The same, and notices when the server has lost everything.
  virtual asio::awaitable<Found> gets_and_canary(std::vector<std::string> keys) = 0;

  /// The server has passed the self-test, or denies it. False without a connection that is ready.
  /// Checked before each `add` or `cas` that acquires a lock.
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

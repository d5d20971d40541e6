// SPDX-License-Identifier: Apache-2.0
//
// Memcached's floor, on libmemcached: `add` to take, `gets` and `cas` with a time in the past to
// give back only what is ours (three round trips; two would free another's lock). Nobody is told by
// memcached when a key goes, so a waiter asks again each millisecond.
#include <libmemcached/memcached.h>

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "compare/drivers/floor.hpp"

namespace dlock::compare {
namespace {

constexpr time_t kLongPast = 2'592'001;  // the smallest expiry that is taken as a moment
constexpr time_t kLease_s = 30;

class Connection {
 public:
  explicit Connection(const Address& address) : client_(memcached_create(nullptr)) {
    memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    memcached_server_add(client_, address.host.c_str(), address.port);
  }
  ~Connection() { memcached_free(client_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool add(const std::string& key, time_t expiry) {
    const auto result = memcached_add(client_, key.data(), key.size(), "me", 2, expiry, 0);
    if (result != MEMCACHED_SUCCESS && result != MEMCACHED_NOTSTORED) fail(result);
    return result == MEMCACHED_SUCCESS;
  }
  /// Puts a new expiry on the key, if its value is still the one that was read.
  void replace(const std::string& key, time_t expiry) {
    const char* keys[] = {key.data()};
    const std::size_t lengths[] = {key.size()};
    memcached_return_t result = memcached_mget(client_, keys, lengths, 1);
    if (result != MEMCACHED_SUCCESS) fail(result);
    memcached_result_st item;
    memcached_result_create(client_, &item);
    std::uint64_t cas = 0;
    while (memcached_fetch_result(client_, &item, &result) != nullptr) {
      cas = memcached_result_cas(&item);
    }
    memcached_result_free(&item);
    result = memcached_cas(client_, key.data(), key.size(), "me", 2, expiry, 0, cas);
    if (result != MEMCACHED_SUCCESS) fail(result);
  }
  /// One request for all.
  void look(const std::vector<std::string>& keys) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto& key : keys) {
      texts.push_back(key.data());
      lengths.push_back(key.size());
    }
    memcached_return_t result = memcached_mget(client_, texts.data(), lengths.data(), texts.size());
    if (result != MEMCACHED_SUCCESS) fail(result);
    memcached_result_st item;
    memcached_result_create(client_, &item);
    while (memcached_fetch_result(client_, &item, &result) != nullptr) continue;
    memcached_result_free(&item);
  }

 private:
  [[noreturn]] void fail(memcached_return_t result) {
    throw std::runtime_error(fmt::format("memcached: {}", memcached_strerror(client_, result)));
  }
  memcached_st* client_;
};

class MemcachedClient : public Client {
 public:
  MemcachedClient(const Address& address, const std::string& lock)
      : connection_(address), key_("floor:" + lock) {}
  void acquire() override {
    while (!connection_.add(key_, kLease_s)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void release() override { connection_.replace(key_, kLongPast); }

 private:
  Connection connection_;
  std::string key_;
};

/// Runs `round` on a thread of its own, again and again, until it is destroyed.
class Repeating : public Crowd {
 public:
  template <class Round>
  Repeating(std::chrono::milliseconds interval, Round round)
      : thread_([interval, round = std::move(round)](const std::stop_token& stop) mutable {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any wake;
          while (!wake.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) {
            round();
          }
        }) {}

 private:
  std::jthread thread_;
};

std::vector<std::string> key_names(int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back(fmt::format("floor:many:{}", i));
  return keys;
}

class MemcachedFloor : public Driver {
 public:
  MemcachedFloor(Address address, std::chrono::milliseconds lease)
      : address_(std::move(address)), lease_(lease) {}

  std::unique_ptr<Client> client(const std::string& lock, Use) override {
    return std::make_unique<MemcachedClient>(address_, lock);
  }
  std::unique_ptr<Crowd> holders(int count) override {
    auto connection = std::make_shared<Connection>(address_);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease_).count() + 1;
    for (const auto& key : key_names(count)) connection->add(key, seconds);
    return std::make_unique<Repeating>(lease_ / 3, [connection, keys = key_names(count), seconds] {
      for (const auto& key : keys) connection->replace(key, seconds);
    });
  }
  /// All waiters of a process ask together, as often as dlock's do when they have waited a while.
  std::unique_ptr<Crowd> waiters(int count) override {
    auto connection = std::make_shared<Connection>(address_);
    return std::make_unique<Repeating>(
        std::chrono::milliseconds(100),
        [connection, keys = key_names(count)] { connection->look(keys); });
  }

 private:
  Address address_;
  std::chrono::milliseconds lease_;
};

}  // namespace

std::unique_ptr<Driver> memcached_floor(const Address& address, std::chrono::milliseconds lease) {
  return std::make_unique<MemcachedFloor>(address, lease);
}

}  // namespace dlock::compare

// SPDX-License-Identifier: Apache-2.0
//
// Memcached's floor: meta commands on a blocking socket. `ms` takes the lock and says which number
// the item has, `ma` counts a token up, `md` gives back by that number only what is ours: three
// round trips. Nobody is told by memcached when a key goes, so a waiter asks again each
// millisecond. Holders and waiters in the hundreds are on libmemcached.
#include <libmemcached/memcached.h>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "compare/drivers/floor.hpp"

namespace dlock::compare {
namespace {

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

/// A blocking socket; one line is asked for at a time.
class Socket {
 public:
  explicit Socket(const Address& address) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const auto port = std::to_string(address.port);
    if (::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) fail("no address");
    descriptor_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected =
        descriptor_ >= 0 && ::connect(descriptor_, found->ai_addr, found->ai_addrlen) == 0;
    ::freeaddrinfo(found);
    if (!connected) fail("it cannot be reached");
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// The whole answer, which has so many lines.
  std::string_view ask(std::string_view request, int lines) {
    if (::send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      fail("it cannot be asked");
    }
    std::size_t size = 0;
    while (std::count(answer_.data(), answer_.data() + size, '\n') < lines) {
      const auto got = ::recv(descriptor_, answer_.data() + size, answer_.size() - size, 0);
      if (got <= 0) fail("it does not answer");
      size += static_cast<std::size_t>(got);
    }
    return {answer_.data(), size};
  }
  [[noreturn]] static void fail(const char* why) {
    throw std::runtime_error(fmt::format("memcached: {}", why));
  }

 private:
  int descriptor_ = -1;
  std::array<char, 512> answer_{};
};

class MemcachedClient : public Client {
 public:
  MemcachedClient(const Address& address, const std::string& lock)
      : socket_(address),
        key_("floor:" + lock),
        take_(fmt::format("ms {} 2 T{} c ME\r\nme\r\n", key_, kLease_s)),
        count_(fmt::format("ma {}:token N0 J1 v\r\n", key_)) {}
  void acquire() override {
    auto answer = socket_.ask(take_, 1);
    while (!answer.starts_with("HD c")) {
      if (!answer.starts_with("NS")) Socket::fail("it has no meta commands");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      answer = socket_.ask(take_, 1);
    }
    give_back_ = fmt::format("md {} C{}\r\n", key_, answer.substr(4, answer.find('\r') - 4));
    if (!socket_.ask(count_, 2).starts_with("VA ")) Socket::fail("it does not count");
  }
  void release() override {
    if (!socket_.ask(give_back_, 1).starts_with("HD")) Socket::fail("it does not give back");
  }

 private:
  Socket socket_;
  const std::string key_;
  const std::string take_;
  const std::string count_;
  std::string give_back_;
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

// SPDX-License-Identifier: Apache-2.0
//
// Redis' floor, on blocking hiredis. Own locks: SET NX PX, and a script that compares and deletes.
// Hand-over: a list as baton, BLPOP to take it and RPUSH to pass it on; one message from holder to
// waiter, first come first served. It has neither lease nor owner: no lock can be quicker.
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "compare/drivers/address.hpp"
#include "compare/drivers/floor.hpp"

namespace dlock::compare {
namespace {

constexpr int kLease_ms = 30'000;
constexpr const char* kCompareAndDelete =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";

using Reply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

class Connection {
 public:
  explicit Connection(const Address& address)
      : context_(redisConnect(address.host.c_str(), address.port), &redisFree) {
    if (!context_ || context_->err != 0) throw std::runtime_error("cannot reach redis");
  }
  redisContext* get() { return context_.get(); }
  Reply take() {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
      throw std::runtime_error(fmt::format("redis: {}", context_->errstr));
    }
    return checked(static_cast<redisReply*>(reply));
  }
  template <class... Arguments>
  Reply ask(const char* format, Arguments... arguments) {
    return checked(static_cast<redisReply*>(redisCommand(context_.get(), format, arguments...)));
  }

 private:
  Reply checked(redisReply* raw) {
    Reply reply(raw, &freeReplyObject);
    if (!reply) throw std::runtime_error(fmt::format("redis: {}", context_->errstr));
    if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(reply->str);
    return reply;
  }
  std::unique_ptr<redisContext, decltype(&redisFree)> context_;
};

class OwnLock : public Client {
 public:
  OwnLock(const Address& address, const std::string& lock)
      : connection_(address), key_("floor:" + lock) {
    script_ = connection_.ask("SCRIPT LOAD %s", kCompareAndDelete)->str;
  }
  void acquire() override {
    const auto reply = connection_.ask("SET %s me NX PX %d", key_.c_str(), kLease_ms);
    if (reply->type != REDIS_REPLY_STATUS) throw std::runtime_error("somebody else has it");
  }
  void release() override { connection_.ask("EVALSHA %s 1 %s me", script_.c_str(), key_.c_str()); }

 private:
  Connection connection_;
  std::string key_;
  std::string script_;
};

class Baton : public Client {
 public:
  Baton(const Address& address, const std::string& lock)
      : connection_(address), key_("floor:baton:" + lock) {
    const auto first = connection_.ask("INCR %s:made", key_.c_str());
    if (first->integer == 1) release();
  }
  void acquire() override { connection_.ask("BLPOP %s 0", key_.c_str()); }
  void release() override { connection_.ask("RPUSH %s baton", key_.c_str()); }

 private:
  Connection connection_;
  std::string key_;
};

/// All locks on one connection, all leases renewed in one batch each third of the lease.
class Holders : public Crowd {
 public:
  Holders(const Address& address, int count, std::chrono::milliseconds lease)
      : connection_(address), count_(count), lease_(lease) {
    batch([&](int i) {
      redisAppendCommand(connection_.get(), "SET floor:many:%d me NX PX %d", i,
                         static_cast<int>(lease_.count()));
    });
    renewer_ = std::jthread([this](const std::stop_token& stop) { renew(stop); });
  }

 private:
  template <class Append>
  void batch(Append&& append) {
    for (int i = 0; i < count_; ++i) append(i);
    for (int i = 0; i < count_; ++i) connection_.take();
  }
  void renew(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    while (!wake.wait_for(lock, stop, lease_ / 3, [&] { return stop.stop_requested(); })) {
      batch([&](int i) {
        redisAppendCommand(connection_.get(), "PEXPIRE floor:many:%d %d", i,
                           static_cast<int>(lease_.count()));
      });
    }
  }

  Connection connection_;
  int count_;
  std::chrono::milliseconds lease_;
  std::jthread renewer_;
};

/// The least that a waiter needs to be told: a subscription on a connection that all share.
class Waiters : public Crowd {
 public:
  Waiters(const Address& address, int count) : connection_(address) {
    for (int i = 0; i < count; ++i) redisAppendCommand(connection_.get(), "SUBSCRIBE w:%d", i);
    for (int i = 0; i < count; ++i) connection_.take();
  }

 private:
  Connection connection_;
};

class RedisFloor : public Driver {
 public:
  explicit RedisFloor(Address address, std::chrono::milliseconds lease)
      : address_(std::move(address)), lease_(lease) {}
  std::unique_ptr<Client> client(const std::string& lock, Use use) override {
    if (use == Use::own) return std::make_unique<OwnLock>(address_, lock);
    return std::make_unique<Baton>(address_, lock);
  }
  std::unique_ptr<Crowd> holders(int count) override {
    return std::make_unique<Holders>(address_, count, lease_);
  }
  std::unique_ptr<Crowd> waiters(int count) override {
    return std::make_unique<Waiters>(address_, count);
  }

 private:
  Address address_;
  std::chrono::milliseconds lease_;
};

}  // namespace

std::unique_ptr<Driver> redis_floor(const Address& address, std::chrono::milliseconds lease) {
  return std::make_unique<RedisFloor>(address, lease);
}

}  // namespace dlock::compare

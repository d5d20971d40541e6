// SPDX-License-Identifier: Apache-2.0
//
// Locks as they are found in many programs, each with its flaw, so that the suite can show what
// comes of it. Never use one.
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <libmemcached/memcached.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>

#include "compare/drivers/address.hpp"
#include "compare/drivers/guarded.hpp"
#include "compare/drivers/zookeeper_session.hpp"

namespace dlock::compare {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);

/// Common to them all: nothing is known of the lock's end, nothing is told, no thread is looked at.
class Naive : public Guarded {
 public:
  Until until() override { return std::nullopt; }
  std::optional<std::uint64_t> token() override { return std::nullopt; }
  std::string lost() override { return {}; }
  std::string release_by_another_thread() override { return release(); }
};

class NaiveRedis : public Naive {
 public:
  explicit NaiveRedis(const Job& job)
      : address_(parse_address(job.text("url"))),
        context_(redisConnect(address_.host.c_str(), address_.port), &redisFree),
        key_("naive:" + job.text("lock")),
        two_steps_(job.text("naive") == "setnx_expire"),
        pause_between_(job.number("pause_between", 0) != 0),
        lease_(job.milliseconds("lease_ms", 1000)) {
    if (!context_ || context_->err != 0) throw std::runtime_error("cannot reach redis");
  }

  void acquire() override {
    while (!(two_steps_ ? take_in_two_steps() : take())) std::this_thread::sleep_for(kPoll);
  }
  /// DEL, whoever's it is by now.
  std::string release() override {
    ask("DEL %s", key_.c_str());
    return {};
  }

 private:
  bool take() {
    return ask("SET %s locked NX PX %d", key_.c_str(), static_cast<int>(lease_.count())) ==
           REDIS_REPLY_STATUS;
  }
  bool take_in_two_steps() {
    ask("SETNX %s locked", key_.c_str());
    if (number_ != 1) return false;
    if (pause_between_) {
      say({{"event", "between"}, {"at", now_ns()}});
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));  // the crash comes here
    }
    ask("PEXPIRE %s %d", key_.c_str(), static_cast<int>(lease_.count()));
    return true;
  }
  template <class... Arguments>
  int ask(const char* format, Arguments... arguments) {
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
        static_cast<redisReply*>(redisCommand(context_.get(), format, arguments...)),
        &freeReplyObject);
    if (!reply) throw std::runtime_error("redis is gone");
    number_ = reply->integer;
    return reply->type;
  }

  Address address_;
  std::unique_ptr<redisContext, decltype(&redisFree)> context_;
  std::string key_;
  bool two_steps_;
  bool pause_between_;
  std::chrono::milliseconds lease_;
  long long number_ = 0;
};

class NaiveMemcached : public Naive {
 public:
  explicit NaiveMemcached(const Job& job)
      : client_(memcached_create(nullptr)),
        key_("naive:" + job.text("lock")),
        expiry_((job.number("lease_ms", 1000) + 999) / 1000) {
    const auto address = parse_address(job.text("url"));
    memcached_server_add(client_, address.host.c_str(), address.port);
  }
  ~NaiveMemcached() override { memcached_free(client_); }

  void acquire() override {
    while (memcached_add(client_, key_.data(), key_.size(), "locked", 6, expiry_, 0) !=
           MEMCACHED_SUCCESS) {
      std::this_thread::sleep_for(kPoll);
    }
  }
  std::string release() override {
    memcached_delete(client_, key_.data(), key_.size(), 0);
    return {};
  }

 private:
  memcached_st* client_;
  std::string key_;
  time_t expiry_;
};

/// First in line by sequence number, and that number taken for a fencing token.
class NaiveZooKeeper : public Guarded {
 public:
  explicit NaiveZooKeeper(const Job& job)
      : session_(parse_address(job.text("url")).hosts), parent_("/naive-" + job.text("lock")) {
    std::replace(parent_.begin() + 1, parent_.end(), '/', '_');
  }

  void acquire() override {
    session_.make(parent_);
    own_ = session_.create_sequential(parent_ + "/n-").path;
  }
  Until until() override { return std::nullopt; }
  std::optional<std::uint64_t> token() override {
    return std::stoull(own_.substr(own_.rfind('-') + 1)) + 1;
  }
  std::string lost() override { return {}; }
  /// Tidy as many are: the last one out removes the parent.
  std::string release() override {
    session_.remove(own_);
    session_.remove(parent_);
    return {};
  }
  std::string release_by_another_thread() override { return release(); }

 private:
  ZooKeeperSession session_;
  std::string parent_;
  std::string own_;
};

}  // namespace

std::unique_ptr<Guarded> make_naive_guarded(const Job& job) {
  const auto scheme = parse_address(job.text("url")).scheme;
  if (scheme == "redis") return std::make_unique<NaiveRedis>(job);
  if (scheme == "memcached") return std::make_unique<NaiveMemcached>(job);
  if (scheme == "zookeeper") return std::make_unique<NaiveZooKeeper>(job);
  throw std::runtime_error("no naive lock for " + scheme);
}

}  // namespace dlock::compare

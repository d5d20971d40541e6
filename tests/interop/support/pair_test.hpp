// SPDX-License-Identifier: Apache-2.0
//
// One of ours and one of theirs on a store of their own, and one lock.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/interop/peers/peer.hpp"
#include "tests/interop/support/foreign_client.hpp"
#include "tests/interop/support/shared_store.hpp"

namespace dlock::interop {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

/// The least that Memcached takes.
inline constexpr std::chrono::milliseconds lease = 3s;
inline constexpr const char* name = "orders/42";

/// Ours, which logs nothing.
LockManager open(const std::string& url);

/// A grant of ours, and when it came.
struct Grant {
  LockHandle handle;
  Clock::time_point at;
};

class PairTest : public testing::TestWithParam<const Peer*> {
 protected:
  /// The server runs, and our manager is connected.
  PairTest();

  const Peer& peer() const { return *GetParam(); }
  std::string url(std::chrono::milliseconds our_lease = lease) const {
    return store_->url(peer().key, our_lease);
  }
  testkit::ProcessOptions their_program(std::chrono::milliseconds their_lease = lease) const {
    return peer().program(*store_, their_lease);
  }
  /// `dlock hold`, in a process of its own.
  testkit::ProcessOptions our_program() const;
  Expiry expiry(Clock::time_point alive, std::chrono::milliseconds of = lease) {
    return store_->expiry({key_of(peer().key, name), of, alive, Clock::now()});
  }
  /// On a thread of its own, with all the time that it needs.
  std::future<Grant> acquire_later();
  /// Fails the test if we get it, or are told anything but that it is taken.
  void expect_we_do_not_get_it();
  /// As the store says; empty: nobody.
  std::string holder() const;
  std::size_t waiters() const { return locks_.status(name).waiting.size(); }

  std::unique_ptr<SharedStore> store_;
  mutable LockManager locks_;
  std::shared_ptr<DistributedLock> lock_;
};

inline std::string name_of(const testing::TestParamInfo<const Peer*>& info) {
  return info.param->name;
}

/// A number in a file, which only a holder may raise.
class Counter {
 public:
  Counter();
  std::string file() const { return (folder_ / "counter").string(); }
  /// As the foreign clients do it: it loses what others add meanwhile.
  void increment() const;
  long value() const;

 private:
  testkit::TempDir folder_{"dlock-interop"};
};

}  // namespace dlock::interop
